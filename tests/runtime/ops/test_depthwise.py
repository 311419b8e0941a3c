"""Depthwise convolutions beside PyTorch's, in both ways that they are computed."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.ops import (
    conv,
    conv_input_gradient,
    conv_weight_gradient,
)
from burnish.ops._kernels import depthwise, depthwise_bands
from tests.harness.examples import examples

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


@st.composite
def convolutions(draw):
    rank = draw(st.integers(1, 3))

    def each(low, high):
        return tuple(draw(st.integers(low, high)) for _ in range(rank))

    kernel, dilation = each(1, 5), each(1, 3)
    pads = tuple(zip(each(0, 4), each(0, 4), strict=True))
    spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    sizes = tuple(
        max(1, span - sum(pad)) + draw(st.integers(0, 9))
        for span, pad in zip(spans, pads, strict=True)
    )
    options = {"stride": each(1, 3), "dilation": dilation}
    n, c, many = (draw(st.integers(1, 3)) for _ in range(3))
    return (n, c + 1, *sizes), ((c + 1) * many, 1, *kernel), pads, options


@pytest.mark.parametrize("few", [0, math.inf], ids=["bands", "rows"])
@settings(max_examples=examples(80), deadline=None)
@given(case=convolutions(), strip=st.integers(1, 8), part=st.integers(1, 3000))
def test_both_ways_beside_pytorch(few, case, strip, part):
    shape, kernel, pads, options = case
    rng = np.random.default_rng(0)
    x, weight = rng.standard_normal(shape), rng.standard_normal(kernel)
    tx, tw = (torch.tensor(a, requires_grad=True) for a in (x, weight))
    around = [p for pair in reversed(pads) for p in pair]
    convolve = getattr(torch.nn.functional, f"conv{len(pads)}d")
    ty = convolve(torch.nn.functional.pad(tx, around), tw, groups=shape[1], **options)
    g = rng.standard_normal(ty.shape)
    ty.backward(torch.tensor(g))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(depthwise, "_FEW", few)
        patch.setattr(depthwise_bands, "_STRIP", strip)
        patch.setattr(depthwise_bands, "_PART", part)
        options |= {"groups": shape[1], "padding": pads}
        y = conv.value(x, weight, **options)
        dx = conv_input_gradient.value(g, weight, sizes=shape[2:], **options)
        dw = conv_weight_gradient.value(x, g, kernel=kernel[2:], **options)
    for found, expected in ((y, ty.detach()), (dx, tx.grad), (dw, tw.grad)):
        np.testing.assert_allclose(found, expected.numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1e30])
@pytest.mark.parametrize("where", ["x", "weight"])
def test_what_is_not_finite_stays_where_it_is_seen(value, where):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, 24, 20), np.float32)
    weight = rng.standard_normal((3, 1, 3, 3), np.float32)
    (x if where == "x" else weight)[1, 0, 1, 1] = value
    y = conv.value(x, weight, padding=1, groups=3)
    expected = torch.nn.functional.conv2d(
        torch.tensor(x), torch.tensor(weight), padding=1, groups=3
    )
    np.testing.assert_allclose(y, expected.numpy(), rtol=1e-4, atol=1e-4)
