"""Codes that quantized layers write for the next one: the plain call's, exactly."""

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops
from burnish.lowbit import Level, QParams, QuantScheme
from tests.runtime.plan.test_quantized import kinds, rounding, tensor

pytestmark = pytest.mark.usefixtures("canaries")

WEIGHT = QuantScheme("q8f", "symmetric", Level.channel(0))


def params(scale, zero=0):
    return QParams(np.float32([scale]), np.int8([zero]))


class Two(nn.Module):
    """A layer, and one that reads its codes."""

    def __init__(self, first, act, channels, rank=2, scales=(0.02, 0.03), zero=-9):
        kind = nn.Conv1d if rank == 1 else nn.Conv2d
        self.first = rounding(first, WEIGHT, params=params(scales[0], 5))
        if first.bias is not None:  # whole units of the sum, as files have them
            numbers = np.random.default_rng(2).integers(-4000, 4000, first.bias.shape)
            units = np.float32(scales[0]) * first.weight.held.scales.reshape(-1)
            first.bias = nn.Param(Tensor((numbers * units).astype(np.float32)))
        self.second = kind(channels, 12, 1, bias=False)
        self.second = rounding(self.second, WEIGHT, params=params(scales[1], zero))
        self.act = act

    def forward(self, x):
        return self.second(self.act(self.first(x)))


def check_equal(model, x):
    fast = burnish.compile(model)
    np.testing.assert_array_equal(fast(x).data, model(x).data)
    return fast


ACTS = {
    "none": lambda x: x,
    "relu": ops.relu,
    "clip": lambda x: ops.clip(x, -0.4, 1.5),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
@pytest.mark.parametrize("channels", [5, 16, 32, 48, 64, 144])
@pytest.mark.parametrize("size", [(3, 1), (4, 7), (5, 29)], ids=str)
def test_channels_with_windows_of_their_own(channels, size, act):
    layer = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
    fast = check_equal(Two(layer, act, channels), tensor(2, channels, *size))
    assert kinds(fast)["quantized"] == 2


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("channels", [16, 80])
@pytest.mark.parametrize(
    "how",
    [
        {"kernel_size": 3, "stride": 2},
        {"kernel_size": 5, "padding": 2},
        {"kernel_size": (7, 3), "padding": (3, 1)},
        {"kernel_size": (2, 3), "stride": 3, "dilation": (3, 2)},
        {"kernel_size": (6, 17), "padding": (3, 8)},
    ],
    ids=str,
)
def test_windows_of_any_size(how, channels, bias):
    layer = nn.Conv2d(channels, channels, groups=channels, bias=bias, **how)
    check_equal(Two(layer, ops.relu, channels), tensor(1, channels, 11, 30))


def test_windows_over_signals():
    layer = nn.Conv1d(36, 36, 31, padding=15, groups=36)
    check_equal(Two(layer, ops.relu, 36, rank=1), tensor(2, 36, 41))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("outs", [7, 16, 40, 96])
@pytest.mark.parametrize("ins", [3, 24, 50])
def test_products(ins, outs, bias):
    layer = nn.Conv2d(ins, outs, 3, padding=1, bias=bias)
    check_equal(Two(layer, ops.relu, outs), tensor(1, ins, 9, 13))


@pytest.mark.parametrize("zero", [-128, -3, 127])
@pytest.mark.parametrize("units", [2, 6, 10, 14])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("channels", [1, 20], ids=["window", "product"])
def test_sums_halfway_between_two_codes(channels, bias, units, zero):
    """A code is so many units of a sum, as nearly as float32 has it."""
    layer = nn.Conv2d(20, 20, 1, groups=20 // channels, bias=bias)
    given, by = np.float32(0.07), np.float32(0.03)
    scale = np.float32(units) * (given * by)
    model = Two(layer, lambda x: x, 20, scales=(given, scale), zero=zero)
    random = np.random.default_rng(0)
    codes = random.integers(-9, 9, (20, channels, 1, 1))
    codes[:, 0] = 127  # the greatest of an output has its scale
    model.first.weight = Tensor((codes * by).astype(np.float32)).quantize(WEIGHT)
    if bias:
        units = given * model.first.weight.held.scales.reshape(-1)
        whole = random.integers(-99, 99, 20) * units
        model.first.bias = nn.Param(Tensor(whole.astype(np.float32)))
    x = random.integers(-9, 9, (1, 20, 40, 41)).astype(np.float32) * given
    check_equal(model, Tensor(x))


@pytest.mark.parametrize("scale", [1e-30, 1e-6, 10.0, 1e30])
def test_scales_far_from_those_of_the_sums(scale):
    layer = nn.Conv2d(20, 33, 1)
    model = Two(layer, lambda x: x, 33, scales=(0.02, scale))
    with np.errstate(all="ignore"):
        check_equal(model, tensor(1, 20, 5, 6))


class Sum(nn.Module):
    """c(act(a(x) + b(y))), each rounded."""

    def __init__(self, act, *params):
        self.a, self.b, self.c = (nn.FakeQuantize() for _ in params)
        self.act = act
        for each, (scale, zero) in zip((self.a, self.b, self.c), params, strict=True):
            each.scale = Tensor(np.full(1, scale, np.float32))
            each.zero_point = Tensor(np.full(1, zero, np.int8))

    def forward(self, x, y):
        return self.c(self.act(self.a(x) + self.b(y)))


def check_all_sums(model):
    """Sums of any two codes are equal bit for bit."""
    steps = np.arange(-130, 130, dtype=np.float32)
    x = Tensor(np.repeat((steps * model.a.scale.data)[None], 260, 0))
    y = Tensor(np.repeat((steps * model.b.scale.data)[:, None], 260, 1))
    fast = burnish.compile(model)
    np.testing.assert_array_equal(fast(x, y).data, model(x, y).data)
    assert kinds(fast)["codes_sum"] == 1


@pytest.mark.parametrize("second", [0.02, 0.01 * (1 + 1e-7), 3.0, 1e-5])
def test_sums_of_codes_halfway_between_two_codes(second):
    check_all_sums(Sum(ops.relu, (0.01, 0), (second, 3), (0.02, -5)))


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
@pytest.mark.parametrize("ends", [(0.01, -0.013), (-0.01, -0.013), (-9.7, 9.3)])
@pytest.mark.parametrize("scale", [0.02, -0.02, -7e-5])
def test_sums_of_codes_with_negative_scales(scale, ends, act):
    first, second = ends
    check_all_sums(Sum(act, (first, 0), (second, 3), (scale, -5)))


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
@pytest.mark.parametrize(
    "scales", [(0.02, -0.03), (-0.02, 0.03), (-0.02, -0.03)], ids=str
)
@pytest.mark.parametrize("groups", [1, 32])
def test_products_with_negative_scales(groups, scales, act):
    layer = nn.Conv2d(32, 32, 3, padding=1, groups=groups)
    check_equal(Two(layer, act, 32, scales=scales), tensor(2, 32, 9, 13))


@pytest.mark.parametrize("size", [0.25, 30.0])
def test_a_bias_of_parts_of_units(size):
    """Products are rounded before it is added, or not: a few codes are other ones."""
    layer = nn.Conv2d(20, 20, 3)
    model, x = Two(layer, ops.relu, 20, scales=(0.02, 0.3)), tensor(1, 20, 30, 31)
    layer.bias = nn.Param(Tensor(tensor(20, seed=3).data * np.float32(size)))
    got, want = burnish.compile(model)(x).data, model(x).data
    assert (got != want).any(1).mean() < 2e-3
    code = 0.3 * np.abs(model.second.weight.data).max()
    np.testing.assert_allclose(got, want, atol=2 * code)


def test_activations_that_are_no_bounds():
    model = Two(nn.Conv2d(80, 80, 3, groups=80), ops.hard_swish, 80)
    x = tensor(1, 80, 6, 9)
    fast = burnish.compile(model)
    code = 0.03 * np.abs(model.second.weight.data).max()  # another one here and there
    np.testing.assert_allclose(fast(x).data, model(x).data, atol=2 * code)
    assert kinds(fast)["quantized"] == 2
