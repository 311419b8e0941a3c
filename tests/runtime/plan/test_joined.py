"""Products that a GPU plan joins and rounds, with NumPy in place of kernels."""

from types import SimpleNamespace

import numpy as np
import pytest

from burnish import Tensor, nn, ops
from burnish.capture import capture
from burnish.ops.spatial.conv import conv
from burnish.plan.cuda.units import convs, half
from burnish.plan.cuda.units.units import units

RANDOM = np.random.default_rng(0)


class Block(nn.Module):
    """Two branches of convolutions and their sum, then each channel by itself."""

    def __init__(self):
        self.first, self.norm1 = nn.Conv2d(6, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.beside = nn.Conv2d(6, 8, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(8)
        self.each = nn.Conv2d(8, 8, 3, stride=2, groups=8)
        self.last = nn.Conv2d(8, 4, 1)

    def forward(self, x):
        y = ops.relu(self.norm2(self.beside(x)) + self.norm1(self.first(x)))
        y = ops.relu6(self.each(y))
        z = self.last(y)
        return z.mean(axis=(2, 3)), z


def block():
    model = Block()
    for norm in (model.norm1, model.norm2):
        norm.running_mean.assign(RANDOM.normal(size=8).astype(np.float32))
        norm.running_var.assign(RANDOM.random(8, np.float32) + 0.5)
        norm.weight.assign(RANDOM.random(8, np.float32) + 0.5)
        norm.bias.assign(RANDOM.normal(size=8).astype(np.float32))
    return model.valid()


class Kernels:
    """cuDNN's and the depthwise kernel, as their modules name them."""

    def __init__(self):
        self.calls = []

    def pays(self, x, groups):
        return True

    def fits(self, x, weight, groups):
        return groups == x.shape[1] == weight.shape[0]

    def last(self, array):
        return array

    taps = last

    def conv(self, x, weight, w, groups, bias, beside, relu):
        self.calls.append((beside is not None, relu))
        y = self._conv(x, weight, w, groups, bias)
        y = y if beside is None else y + beside
        return np.maximum(y, 0) if relu else y

    def depthwise(self, x, weight, w, bias, bounds, ceiling):
        self.calls.append(bounds if ceiling is None else (*bounds, ceiling))
        x = x if ceiling is None else np.minimum(x, ceiling)
        y = self._conv(x, weight, w, len(weight), bias)
        return y if bounds is None else np.clip(y, *bounds)

    def _conv(self, x, weight, w, groups, bias):
        options = {"stride": w.stride, "padding": w.pads, "dilation": w.dilation}
        assert x.dtype == weight.dtype
        return conv.value(x, weight, bias, groups=groups, **options)


@pytest.fixture
def kernels(monkeypatch):
    made = Kernels()
    monkeypatch.setattr(convs, "convolution", made)
    monkeypatch.setattr(convs, "last", made.last)
    monkeypatch.setattr(convs, "depthwise", made)
    by_itself = SimpleNamespace(evaluated=lambda formula, arrays: formula(*arrays))
    monkeypatch.setattr(convs, "elements", by_itself)
    return made


@pytest.fixture(autouse=True)
def casts(monkeypatch):
    monkeypatch.setattr(half, "cast", lambda array, dtype: array.astype(dtype))


def run(program, x, precision, kept=None):
    values = program.values([x])
    for unit in units(program, {} if kept is None else kept, precision):
        unit.run(values)
    return program.filled(values)


def test_convolutions_have_what_follows_them(kernels):
    model, x = block(), Tensor(RANDOM.normal(size=(2, 6, 9, 7)).astype(np.float32))
    program = capture(model, x)
    labels = [unit.label for unit in units(program, {}, "fp32")]
    assert labels[:4] == [
        "conv + batch_norm",
        "conv + batch_norm + add + relu",
        "conv + relu6",
        "conv",
    ]
    wanted, kept = model(x), {}
    for _ in range(2):
        for one, other in zip(run(program, x, "tf32", kept), wanted, strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), atol=2e-5)
    assert kernels.calls[:4] == [
        (False, False),
        (True, True),
        (0.0, 6.0),
        (False, False),
    ]
    model.norm1.weight.assign(model.norm1.weight.data * 2)
    y = run(program, x, "tf32", kept)[1].numpy()
    np.testing.assert_allclose(y, model(x)[1].numpy(), atol=2e-5)


@pytest.mark.parametrize("is_read_twice", [False, True])
def test_a_bound_is_applied_where_a_depthwise_convolution_reads(kernels, is_read_twice):
    expand = nn.Conv2d(4, 8, 1)
    each = nn.Conv2d(8, 8, 3, padding=1, groups=8)

    def function(x):
        y = ops.relu6(expand(x))
        z = ops.relu6(each(y))
        return (z, y.mean()) if is_read_twice else z

    x = Tensor(RANDOM.normal(size=(2, 4, 5, 6)).astype(np.float32) * 30)
    wanted, made = function(x), run(capture(function, x), x, "tf32")
    if is_read_twice:
        wanted, made = wanted[0], made[0]
    assert (expand(x).numpy() > 6).any()
    np.testing.assert_allclose(made.numpy(), wanted.numpy(), atol=2e-5)
    behind = (0.0, 6.0) if is_read_twice else (0.0, 6.0, 6.0)
    assert kernels.calls == [(False, not is_read_twice), behind]


def test_a_bound_is_applied_before_a_convolution_that_declines(kernels, monkeypatch):
    expand = nn.Conv2d(4, 8, 1)
    each = nn.Conv2d(8, 8, 3, padding=1, groups=8)
    monkeypatch.setattr(kernels, "fits", lambda *_: False)
    x = Tensor(RANDOM.normal(size=(2, 4, 5, 6)).astype(np.float32) * 30)
    program = capture(lambda x: each(ops.relu6(expand(x))), x)
    wanted = each(ops.relu6(expand(x)))
    np.testing.assert_allclose(
        run(program, x, "tf32").numpy(), wanted.numpy(), atol=2e-5
    )


def test_half_precision_is_of_what_arguments_and_parameters_decide(kernels):
    model, x = block(), Tensor(RANDOM.normal(size=(2, 6, 9, 7)).astype(np.float32))
    wanted = model(x)
    for one, other in zip(run(capture(model, x), x, "fp16"), wanted, strict=True):
        assert one.dtype == np.float16
        scale = abs(other.numpy()).max()
        assert abs(one.numpy() - other.numpy()).max() < 5e-3 * scale


def test_whole_numbers_stay_exact_in_half_precision():
    def function(x):
        places = ops.cast(Tensor.arange(4000), dtype=np.float32) * 0.5
        return x + 1, places

    x = Tensor(np.ones(3, np.float32))
    one, places = run(capture(function, x), x, "fp16")
    assert (one.dtype, places.dtype) == (np.float16, np.float32)
    np.testing.assert_array_equal(places.numpy(), np.arange(4000) * 0.5)
