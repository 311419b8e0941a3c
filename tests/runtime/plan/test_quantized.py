"""Quantized inputs and weights in plans: products summed as whole numbers."""

import copy

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops
from burnish.errors import InputError
from burnish.lowbit import Level, QParams, QuantScheme
from burnish.nn.lowbit.input_quantizer import InputQuantizer
from burnish.plan.cpu.table import LOWERED, Declined
from burnish.quantization import Quantizer
from tests.runtime.plan.checks import check

pytestmark = pytest.mark.usefixtures("canaries")

INPUT = QuantScheme("q8f", "affine")


def tensor(*shape, seed=0):
    random = np.random.default_rng(seed)
    return Tensor(random.standard_normal(shape).astype(np.float32) + np.float32(0.3))


def rounding(layer, weight=None, given=INPUT, params=None, name="weight"):
    """A layer with a weight of codes that rounds what it is given."""
    held = Tensor(tensor(*getattr(layer, name).shape, seed=1).data)
    weight = weight or QuantScheme("q8f", "symmetric", Level.channel(0))
    setattr(layer, name, held.quantize(weight))
    layer.on_input = InputQuantizer(given, params, integers=True)
    return layer


def kinds(fast):
    """How many records of each kind the only plan has."""
    (plan,) = fast._plans.values()
    found = [step.kind for step in plan.steps]
    return {kind: found.count(kind) for kind in found}


@pytest.mark.parametrize("shape", [(1, 37), (3, 5, 37), (40, 37), (7, 64)])
@pytest.mark.parametrize("given", [Level.tensor(), Level.row()])
@pytest.mark.parametrize(
    "weight",
    [
        QuantScheme("q8s", "symmetric", Level.tensor()),
        QuantScheme("q8f", "affine", Level.tensor()),
        QuantScheme("q8f", "affine", Level.channel(0)),
        QuantScheme("q4f", "affine", Level.channel(0)),
    ],
    ids=str,
)
def test_products(weight, given, shape):
    layer = rounding(
        nn.Linear(shape[-1], 77), weight, QuantScheme("q8f", "affine", given)
    )
    fast = check(layer, tensor(*shape))
    assert kinds(fast) == {"calibrate": 1, "quantize": 1, "quantized": 1}


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Conv2d(3, 20, 3, stride=2, padding=1), (2, 3, 15, 13)),
        (nn.Conv2d(1, 5, (2, 5), padding=(0, 2)), (1, 1, 9, 12)),
        (nn.Conv2d(20, 33, (3, 1), dilation=2, padding=(1, 3)), (2, 20, 8, 9)),
        (nn.Conv2d(48, 16, 1), (1, 48, 4, 7)),
        (nn.Conv1d(17, 40, 4, stride=3), (3, 17, 31)),
        (nn.Conv1d(16, 7, 3, dilation=3, padding=3), (2, 16, 11)),
    ],
    ids=str,
)
@pytest.mark.parametrize("mode", ["symmetric", "affine"])
def test_convolutions(layer, shape, mode):
    scheme = QuantScheme("q8f", mode, Level.channel(0))
    fast = check(rounding(layer, scheme), tensor(*shape))
    assert kinds(fast)["quantized"] == 1


@pytest.mark.parametrize("mode", ["symmetric", "affine"])
@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Conv2d(37, 37, 3, padding=1, groups=37), (2, 37, 15, 29)),
        (nn.Conv2d(20, 20, 5, stride=2, padding=2, groups=20), (1, 20, 9, 26)),
        (nn.Conv2d(16, 16, (7, 3), padding=(3, 0), groups=16), (1, 16, 8, 15)),
        (nn.Conv2d(8, 8, (1, 4), dilation=(1, 3), groups=8), (1, 8, 5, 13)),
        (nn.Conv1d(40, 40, 5, stride=2, padding=2, groups=40), (3, 40, 31)),
    ],
    ids=str,
)
def test_convolutions_of_channels_alone(layer, shape, mode):
    params = INPUT.params(np.array([-2.0]), np.array([3.0]))
    scheme = QuantScheme("q8f", mode, Level.channel(0))
    fast = check(rounding(layer, scheme, params=params), tensor(*shape))
    # sums are less zero points of weights only where all channels share them
    assert ("quantized" in kinds(fast)) == (mode == "symmetric")


def quantizer(scale, zero=0):
    made = nn.FakeQuantize()
    made.scale = Tensor(np.full(1, scale, np.float32))
    made.zero_point = Tensor(np.full(1, zero, np.int8))
    return made


class Residual(nn.Module):
    """The sum of a value and of two layers of it, rounded and read three times"""

    def __init__(self, channels, act):
        inner = INPUT.params(np.array([-3.0]), np.array([4.0]))
        self.first, self.second = quantizer(0.025), quantizer(0.02, 5)
        self.out, self.act = quantizer(0.03, -7), act
        again = QParams(np.float32([0.03]), np.int8([-7]))
        self.up = rounding(nn.Conv2d(channels, 40, 1), params=inner)
        self.down = rounding(nn.Conv2d(40, channels, 1), params=inner)
        self.behind = rounding(nn.Conv2d(channels, 24, 3, padding=1), params=again)

    def forward(self, x):
        x = self.first(x)
        y = self.second(self.down(ops.relu(self.up(x))))
        z = self.out(self.act(x + y))
        return self.behind(z), ops.global_avg_pool(z)


@pytest.mark.parametrize("channels", [16, 21, 48])
@pytest.mark.parametrize(
    "act",
    [lambda x: x, ops.relu, lambda x: ops.clip(x, -1, 2)],
    ids=["none", "relu", "clip"],
)
def test_sums_of_rounded_values_are_sums_of_codes(channels, act):
    model, x = Residual(channels, act), tensor(2, channels, 7, 11)
    fast = check(model, x)
    found = kinds(fast)
    assert found["codes_sum"] == 2  # with a margin for the convolution, and without
    assert "program" not in found
    want = model(x)[1].data
    np.testing.assert_allclose(fast(x)[1].data, want, rtol=1e-6, atol=1e-6)


def test_sums_of_rounded_rows_are_exact():
    class Rows(nn.Module):
        def __init__(self):
            self.a, self.b = quantizer(0.02), quantizer(0.03, 3)
            self.c = quantizer(0.05)

        def forward(self, x, y):
            return self.c(self.a(x) + self.b(y))

    model, x, y = Rows(), tensor(5, 37), tensor(5, 37, seed=1)
    fast = burnish.compile(model)
    np.testing.assert_array_equal(fast(x, y).data, model(x, y).data)
    assert kinds(fast)["codes_sum"] == 1


def test_rounding_twice_alike_is_rounding_once_until_it_is_not():
    class Twice(nn.Module):
        def __init__(self):
            self.first, self.fc = quantizer(0.03, 4), nn.Linear(33, 20)
            rounding(self.fc, params=QParams(np.float32([0.03]), np.int8([4])))

        def forward(self, x):
            y = self.first(x)
            return self.fc(y) + ops.mean(y)

    model, x = Twice(), tensor(6, 33)
    fast = check(model, x)
    assert kinds(fast)["fake_quantize"] == 1
    model.first.scale = Tensor(np.full(1, 0.04, np.float32))
    np.testing.assert_allclose(fast(x).data, model(x).data, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("scale", [1e-39, 1e-30, 0.1, 3e38])
def test_numbers_near_the_middle_of_two_codes_are_divided(scale):
    scale = np.float32(scale)
    steps = np.arange(-140, 140, 0.5, dtype=np.float32)
    with np.errstate(over="ignore"):
        x = np.float32(steps * scale)
    x = np.concatenate([x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, -x)])
    model = quantizer(scale, 3)
    x = Tensor(x[np.isfinite(x)])
    with np.errstate(all="ignore"):
        want = model(x).data
    np.testing.assert_array_equal(burnish.compile(model)(x).data, want)


@pytest.mark.parametrize(
    "layer",
    [nn.Conv2d(32, 32, 3, groups=2), nn.Conv3d(2, 3, 2), nn.ConvTranspose2d(4, 5, 2)],
    ids=str,
)
def test_other_convolutions_read_the_values_that_codes_stand_for(layer):
    spatial = (5,) * (len(layer.weight.shape) - 2)
    channels = {nn.Conv2d: 32, nn.Conv3d: 2}.get(type(layer), 4)
    fast = check(rounding(layer), tensor(2, channels, *spatial))
    assert "quantized" not in kinds(fast)
    assert kinds(fast)["fake_quantize"] == 1


@pytest.mark.parametrize("rows", [1, 2, 5, 6, 7, 20])
@pytest.mark.parametrize(("ins", "outs"), [(300, 40), (36, 5), (1060, 77), (2120, 16)])
def test_sums_are_exact(rows, ins, outs):
    """Of the largest codes too, whose pairs of products have more than 16 bits."""
    layer = rounding(nn.Linear(ins, outs, bias=False))
    weight = tensor(outs, ins).data
    weight[:, : ins // 2] = np.abs(weight).max()
    scheme = QuantScheme("q8f", "symmetric", Level.channel(0))
    layer.weight = Tensor(weight).quantize(scheme)
    x = tensor(rows, ins)
    x.data[: (rows + 1) // 2, : ins // 2] = x.data.max()
    scale, zero = (np.asarray(part) for part in INPUT.calibrated(x.data))
    codes = np.clip(np.rint(x.data / scale) + zero, -128, 127).astype(np.int64)
    weight = layer.weight.held
    sums = (codes - zero) @ weight.codes.astype(np.int64).T
    unit = scale * weight.scales.reshape(-1)
    np.testing.assert_array_equal(
        burnish.compile(layer)(x).data, sums.astype(np.float32) * unit
    )


@pytest.mark.parametrize("outs", [40, 5])
def test_a_bias_of_whole_units_belongs_to_the_sum(outs):
    params = INPUT.params(np.array([-2.0]), np.array([3.0]))
    layer = rounding(nn.Linear(33, outs), params=params)
    unit = params.scales * layer.weight.held.scales.reshape(-1)
    x = tensor(7, 33)
    for bias in (np.arange(outs) * 1001, np.full(outs, 1 << 23)):
        layer.bias = Tensor((bias * unit).astype(np.float32))
        np.testing.assert_array_equal(burnish.compile(layer)(x).data, layer(x).data)
    layer.bias = Tensor((np.arange(outs) + 0.5).astype(np.float32))
    check(layer, x)


@pytest.mark.parametrize("layer", [nn.Linear(12, 20), nn.Conv1d(12, 20, 3)], ids=str)
def test_a_bias_is_rounded_down_where_the_scales_of_its_units_are_given(layer):
    rounding(layer)
    scales = layer.weight.held.scales.reshape(-1)
    layer.on_input = InputQuantizer(INPUT, integers=True, bias_scales=scales)
    x = tensor(*((7, 12) if layer.weight.data.ndim == 2 else (2, 12, 9)))
    step = np.asarray(INPUT.calibrated(x.data)[0])
    down = np.floor(layer.bias.data / (step * scales))
    plain = rounding(copy.deepcopy(layer))
    plain.bias = Tensor(down * (step * scales))
    want = plain(x).data
    np.testing.assert_array_equal(layer(x).data, want)
    np.testing.assert_array_equal(burnish.compile(layer)(x).data, want)
    assert not np.array_equal(layer.train()(x).data, want)  # there it is as it trains


class Block(nn.Module):
    """Static scales, an activation, a sum, and inputs that other layers read too."""

    def __init__(self):
        params = INPUT.params(np.array([-2.0]), np.array([3.0]))
        self.first = rounding(nn.Conv2d(16, 16, 3, padding=1), params=params)
        self.second = rounding(nn.Conv2d(16, 16, 3, padding=1), params=params)
        self.last = rounding(nn.Linear(16, 10), params=params)
        self.aside = rounding(nn.Conv2d(16, 16, 3, groups=16), params=params)

    def forward(self, x):
        y = ops.relu(self.second(ops.gelu(self.first(x))) + x)
        return self.last(y.mean((2, 3))), self.aside(y).mean((2, 3))


def test_a_network():
    found = kinds(check(Block(), tensor(2, 16, 9, 9)))
    assert found["quantized"] == 4
    assert "fake_quantize" not in found  # a product stores what it rounds


def test_two_layers_share_codes():
    class Two(nn.Module):
        def __init__(self):
            self.a = rounding(nn.Linear(24, 16))
            self.b = rounding(nn.Linear(24, 8))
            self.b.on_input = None
            self.a.on_input, self.on_input = None, self.a.on_input

        def forward(self, x):
            return self.a(x), self.b(x)

    assert kinds(check(Two(), tensor(3, 24)))["quantize"] == 1


@pytest.mark.parametrize("layers", [1, 2])
def test_recurrent_steps_share_their_weights(layers):
    burnish.seed(layers)  # other biases may bring a state halfway between two codes
    layer = nn.LSTM(12, 24, num_layers=layers, batch_first=True)
    for name, part in list(layer.named_parameters()):
        if "weight" in name:
            rounding(layer, QuantScheme("q8s"), name=name)
        else:
            setattr(layer, name, part)
    fast = check(layer, tensor(2, 9, 12))
    assert kinds(fast)["recurrent_codes"] == layers
    (plan,) = fast._plans.values()
    sizes = [array.nbytes for array in plan.constants.values()]
    assert sum(sizes) < 40_000 * layers


def test_scales_of_numbers_that_are_not_finite_are_refused():
    fast = burnish.compile(rounding(nn.Linear(8, 4)))
    assert fast(tensor(2, 8)).shape == (2, 4)
    with pytest.raises(InputError, match="finite"):
        fast(Tensor(np.array([[1, np.inf, 0, 0, 0, 0, 0, 0]], np.float32).repeat(2, 0)))


def test_new_weights_are_seen():
    layer = rounding(nn.Linear(20, 6))
    x, fast = tensor(3, 20), burnish.compile(layer)
    for weight in (tensor(6, 20, seed=2).quantize(QuantScheme("q8s")), tensor(6, 20)):
        fast(x)
        layer.weight = weight
        np.testing.assert_allclose(fast(x).data, layer(x).data, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("level", [Level.channel(1), Level.block(8), Level.tensor()])
def test_a_weight_quantized_in_another_way_is_seen(level):
    layer = rounding(nn.Linear(32, 32))
    x, fast = tensor(5, 32), burnish.compile(layer)
    fast(x)
    layer.weight.assign(tensor(32, 32, seed=9).data * np.linspace(0.1, 3, 32))
    layer.quantize_weights(Quantizer(scheme=QuantScheme("q8f", "affine", level)))
    np.testing.assert_allclose(fast(x).data, layer(x).data, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", ["getitem", "transpose", "max_pool"])
def test_a_kernel_that_declines_late_leaves_nothing_behind(name, monkeypatch):
    class Many(nn.Module):
        def __init__(self):
            self.quantizer = rounding(nn.Linear(16, 24)).on_input
            self.a, self.b = (rounding(nn.Linear(16, 24)) for _ in range(2))
            self.a.on_input = self.b.on_input = None

        def forward(self, x):
            y = self.quantizer(x.transpose(0, 2, 3, 1))
            z = y.transpose(0, 3, 1, 2)
            return self.a(y), self.b(y), ops.tanh(y[:, 1:]), ops.max_pool(z, 2), y + 1

    known = LOWERED[name]

    def late(b, node):
        known(b, node)
        raise Declined("late")

    monkeypatch.setitem(LOWERED, name, late)
    check(Many(), tensor(2, 16, 8, 8))


@pytest.mark.parametrize(
    "scheme",
    [
        QuantScheme("q8s", "symmetric", Level.tensor()),
        QuantScheme("q8f", "affine", Level.row()),
        QuantScheme("q4f", "affine", Level.block(32)),
        QuantScheme("q4s", "symmetric", Level.block(4, 16)),
        QuantScheme("q8f", "affine", Level.channel(1)),
    ],
    ids=str,
)
@pytest.mark.parametrize("width", [64, 37])
def test_rows_of_codes_are_looked_up(scheme, width):
    layer = nn.Embedding(13, width)
    layer.weight = tensor(13, width).quantize(scheme)
    fast, ids = burnish.compile(layer), np.array([[3, -1, 12], [0, 3, -13]])
    np.testing.assert_array_equal(fast(Tensor(ids)).data, layer(Tensor(ids)).data)
    assert kinds(fast) == {"gather": 1}
    with pytest.raises(InputError, match="13"):
        fast(Tensor(np.array([[0, 1, 13], [0, 0, 0]])))


def test_rows_of_codes_that_are_no_whole_numbers_or_have_a_greatest_length():
    ids = Tensor(np.array([1, 2]))
    for layer, scheme in (
        (nn.Embedding(5, 8), QuantScheme("e4m3", "symmetric", Level.row())),
        (nn.Embedding(5, 8, max_norm=1.0), QuantScheme("q8s", "symmetric")),
    ):
        layer.weight = tensor(5, 8).quantize(scheme)
        model = nn.Sequential(layer, nn.Linear(8, 3))
        fast = check(model, ids)
        assert "gather" not in kinds(fast)


class Chain(nn.Module):
    """Layers whose results only other layers' codes are of, but for what is `kept`."""

    def __init__(self, mode, kept):
        params = INPUT.params(np.array([-1.0]), np.array([2.0]))
        self.kept = kept
        self.first = rounding(nn.Conv2d(3, 20, 3, padding=1, bias=False), params=params)
        weight = QuantScheme("q8f", mode, Level.channel(0))
        self.second = rounding(
            nn.Conv2d(20, 33, (3, 2), stride=2, padding=(1, 0), bias=False),
            weight,
            params=params,
        )
        self.third = rounding(nn.Conv2d(33, 16, 1, bias=False), weight, params=params)

    def forward(self, x):
        y = ops.relu(self.first(x))
        z = self.second(y)
        return (self.third(z), y) if self.kept else self.third(z)


@pytest.mark.parametrize("mode", ["symmetric", "affine"])
@pytest.mark.parametrize("kept", [False, True])
def test_a_product_writes_the_codes_that_the_next_one_reads(mode, kept):
    model = Chain(mode, kept)
    fast, x = burnish.compile(model), tensor(2, 3, 9, 10)
    got, want = (each if kept else (each,) for each in (fast(x), model(x)))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a.data, b.data)
    (plan,) = fast._plans.values()
    # the second's margin needs a record of its own, the third's codes none
    assert kinds(fast)["quantize"] == 2
    stored = [s.fields["out"] is not None for s in plan.steps if s.kind == "quantized"]
    assert stored == [kept, False, True]


def test_linear_layers_write_codes():
    params = INPUT.params(np.array([-1.0]), np.array([2.0]))
    sizes = ((17, 40), (40, 21), (21, 5))
    layers = [rounding(nn.Linear(*s, bias=False), params=params) for s in sizes]
    model = nn.Sequential(layers[0], nn.ReLU(), *layers[1:])
    fast, x = burnish.compile(model), tensor(3, 7, 17)
    np.testing.assert_array_equal(fast(x).data, model(x).data)
    assert kinds(fast) == {"quantize": 1, "quantized": 3}


@pytest.mark.parametrize("outs", [20, 32])
def test_a_product_stores_the_values_that_its_codes_stand_for(outs):
    params = INPUT.params(np.array([-1.0]), np.array([2.0]))
    first = rounding(nn.Conv2d(3, outs, 3, padding=1, bias=False), params=params)
    rounded = InputQuantizer(INPUT, params)
    model = nn.Sequential(first, nn.ReLU(), rounded, nn.MaxPool2d(2), nn.Sigmoid())
    fast, x = (
        burnish.compile(nn.Sequential(first, nn.ReLU(), rounded)),
        tensor(2, 3, 8, 9),
    )
    np.testing.assert_array_equal(fast(x).data, rounded(ops.relu(first(x))).data)
    assert "fake_quantize" not in kinds(fast)
    check(model, x)


def test_results_that_are_no_numbers_are_none_of_codes():
    params = INPUT.params(np.array([-1.0]), np.array([2.0]))
    first, second = (rounding(nn.Linear(16, 16), params=params) for _ in range(2))
    first.bias = Tensor(np.where(np.arange(16) == 3, np.nan, 0).astype(np.float32))
    model, x = nn.Sequential(first, second), tensor(4, 16)
    with np.errstate(invalid="ignore"):  # the plan runs eagerly then
        np.testing.assert_array_equal(burnish.compile(model)(x).data, model(x).data)


@pytest.mark.parametrize("scale", [0.5, np.inf])
def test_nan_becomes_the_least_code_in_plans_too(scale):
    layer = nn.FakeQuantize()
    layer.scale = Tensor(np.float32([scale]))
    layer.zero_point = Tensor(np.int8([3]))
    x = Tensor(np.resize(np.float32([np.nan, -np.inf, np.inf, 3, -3]), (3, 37)))
    with np.errstate(invalid="ignore"):
        want = layer(x).data
        np.testing.assert_array_equal(burnish.compile(layer)(x).data, want)
    assert (want[np.isnan(x.data)] == np.float32(-131) * np.float32(scale)).all()


@pytest.mark.parametrize("channels", [None, 5])
def test_numbers_of_16_bits_are_rounded_in_plans(channels):
    layer = nn.FakeQuantize(channels, axis=0, value="q16f")
    scale = np.linspace(1e-4, 3e-4, channels or 1, dtype=np.float32)
    layer.scale.assign(scale)
    layer.zero_point.assign(np.linspace(-9000, 9000, channels or 1).astype(np.int16))
    steps = np.arange(-40_000, 40_000, 0.5, dtype=np.float32)
    x = np.float32(steps * scale.reshape(-1, 1)).reshape(channels or 1, -1)
    fast = burnish.compile(layer)
    got = [fast(Tensor(x)).numpy() for _ in range(2)]
    if channels is None:
        assert kinds(fast) == {"fake_quantize": 1}
    np.testing.assert_array_equal(got, [layer(Tensor(x)).numpy()] * 2)


def test_a_layer_of_small_weights_takes_numbers_of_16_bits():
    scheme = QuantScheme("q16f", "affine")
    params = QParams(np.float32([1e-4]), np.int16([-900]))
    layer = rounding(nn.Linear(37, 21))
    layer.on_input = InputQuantizer(scheme, params)
    fast = check(layer, tensor(4, 37))
    assert "quantized" not in kinds(fast)
    rows = nn.Embedding(30, 16)
    rows.weight = rows.weight.quantize(QuantScheme("q16s", level=Level.channel(0)))
    ids = Tensor(np.arange(30))
    np.testing.assert_array_equal(burnish.compile(rows)(ids).numpy(), rows(ids).numpy())
