"""Small convolutions in one launch, and their input's gradients, against float64."""

import numpy as np
import pytest

from burnish import Device, ops
from burnish.backend.cuda.convolution import few_channels
from burnish.backend.cuda.layout import last
from burnish.backend.cuda.libraries import workspace
from burnish.ops._kernels.window import window

CASES = [
    ((2, 1, 9, 8), (8, 1, 3, 3), 1, 0, 1),
    ((2, 3, 9, 8), (20, 3, 3, 2), 2, ((1, 2), (0, 1)), 1),
    ((3, 4, 11), (5, 4, 3), 1, 2, 2),
    ((1, 2, 5, 6, 7), (3, 2, 2, 3, 1), (1, 2, 1), 1, 1),
    ((300, 3, 6, 6), (4, 3, 1, 1), 1, 0, 1),
    ((2, 3, 7, 7), (4, 3, 3, 3), (2, 1), ((-1, 2), (1, 0)), 1),
]
ROUNDING = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-14}


def numbers(shape, seed, name="float32"):
    drawn = np.random.default_rng(seed).normal(size=shape)
    return Device("cuda").put(drawn.astype(name))


def far(*arrays):
    return [a.get().astype("f8") for a in arrays]


def apart(got, wanted):
    assert got.shape == wanted.shape
    return abs(got.get() - wanted).max() / abs(wanted).max()


@pytest.mark.parametrize("name", ROUNDING)
@pytest.mark.parametrize(("shape", "kernel", "stride", "padding", "dilation"), CASES)
def test_values_and_gradients(shape, kernel, stride, padding, dilation, name):
    x, weight, bias = (
        numbers(s, i, name) for i, s in enumerate((shape, kernel, kernel[:1]))
    )
    w = window("conv", shape[2:], kernel[2:], stride, padding, dilation)
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    for given in ((x, weight), (x, weight, bias)):
        run = few_channels.prepared(x, weight, w, biased=len(given) > 2)
        assert apart(run(*given), ops.conv(*far(*given), **options)) < ROUNDING[name]
    g = numbers((shape[0], kernel[0], *w.out), 3, name)
    run = few_channels.prepared_gradient(g, weight, w, shape[2:])
    options = {"stride": w.stride, "padding": w.pads, "dilation": w.dilation}
    wanted = ops.conv_input_gradient(*far(g, weight), sizes=shape[2:], **options)
    assert apart(run(g, weight), wanted) < ROUNDING[name]
    run = few_channels.prepared_slopes(x, g, w)
    wanted = ops.conv_weight_gradient(*far(x, g), kernel=w.kernel, **options)
    assert apart(run(x, g), wanted) < ROUNDING[name]


def test_padding_is_multiplied():
    """An infinite weight beside padding gives NaN, as sums of products do."""
    x, weight = numbers((1, 1, 4), 0), Device("cuda").put(np.float32([[[np.inf, 1]]]))
    w = window("conv", (4,), (2,), 1, 1, 1)
    y = few_channels.prepared(x, weight, w, biased=False)(x, weight).get()
    assert np.isnan(y[0, 0, 0])


@pytest.mark.parametrize(
    ("shape", "kernel"),
    [((1, 64, 8, 8), (64, 64, 6, 6)), ((64, 3, 99, 99), (16, 3, 5, 5))],
)
def test_larger_ones_are_products_of_matrices(shape, kernel):
    x, weight = numbers(shape, 0), numbers(kernel, 1)
    w = window("conv", shape[2:], kernel[2:], 1, 0, 1)
    assert few_channels.prepared(x, weight, w, biased=False) is None
    g = numbers((shape[0], kernel[0], *w.out), 2)
    assert few_channels.prepared_slopes(x, g, w) is None


def test_plans_and_channels_last_have_their_own():
    x, weight = numbers((2, 3, 8, 8), 0), numbers((4, 3, 3, 3), 1)
    w = window("conv", (8, 8), (3, 3), 1, 0, 1)
    assert few_channels.prepared(last(x), weight, w, biased=False) is None
    with workspace.planned(None, tf32=False):
        assert few_channels.prepared(x, weight, w, biased=False) is None
