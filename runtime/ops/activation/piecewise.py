"""Activations that are linear in pieces: ReLU and its variants, hard_swish."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend import Array, namespace
from burnish.errors import InputError
from burnish.operator import composed, operator
from burnish.ops._kernels.blocks import blockwise, filled, keep, positive
from burnish.ops._kernels.slopes import (
    gated,
    hard_swish_gradient,
)
from burnish.ops._shapes import unbroadcast
from burnish.ops.elementwise.arithmetic import abs_, minimum
from burnish.ops.elementwise.compare import where


@operator
def relu(x) -> Array:
    """The greater of x and 0."""
    return positive(x)


@relu.vjp
def _(g, y, x):
    return gated(g, y, above=0)


@operator
def relu6(x) -> Array:
    """x held between 0 and 6."""
    return namespace(x).clip(x, 0, 6)


@relu6.vjp
def _(g, y, x):
    return gated(g, y, above=0, below=6)


@operator
def hard_tanh(x, /, low: float = -1.0, high: float = 1.0) -> Array:
    """x held between low and high; at a bound the gradient is 0, unlike `clip`'s."""
    return namespace(x).clip(x, low, high)


@hard_tanh.vjp
def _(g, y, x, *, low, high):
    return gated(g, x, above=low, below=high)


@operator
def leaky_relu(x, /, negative_slope: float = 0.01) -> Array:
    """x where x > 0, negative_slope * x elsewhere."""
    return filled(
        _leaking, x, negative_slope, negative_slope <= 1 and negative_slope != 0
    )


@leaky_relu.vjp
def _(g, y, x, *, negative_slope):
    one = x.dtype.type(1)
    return blockwise(lambda g, x: g * where(x > 0, one, negative_slope), g, x)


def _leaking(y, x, slope, rises):
    """rises: the slope is known to be at most 1, and not 0 (0 * inf is NaN)."""
    xp = namespace(x)
    xp.multiply(x, slope, out=y)
    if rises:
        xp.maximum(x, y, out=y)
    else:
        y[...] = where(x > 0, x, y)


@composed
def prelu(x: Any, weight: Any) -> Array:
    """x where x > 0, weight * x elsewhere; weight (1,), or (C,) for axis 1"""
    count = weight.shape[-1] if weight.shape else 1
    if count > 1 and (len(weight.shape) > 1 or x.shape[1:2] != (count,)):
        raise InputError(
            f"prelu: expected weight (1,), or one number for each of the channels in "
            f"axis 1 of x {x.shape}, got {weight.shape}"
        )
    shape = (count, *(1 for _ in x.shape[2:])) if count > 1 else ()
    return prelu_of(x, weight.reshape(shape))


@operator
def prelu_of(x, slope) -> Array:
    """x where x > 0, slope * x elsewhere; slope broadcasts to x."""
    xp = namespace(x)
    if xp.broadcast_shapes(x.shape, slope.shape) != x.shape or x.dtype.kind != "f":
        return xp.where(x > 0, x, slope * x)
    rises = xp is np and bool((slope <= 1).all() and slope.all())
    return filled(_leaking, x, slope, rises)


@prelu_of.vjp("x")
def _(g, y, x, slope):
    part = blockwise(lambda g, x, s: where(x > 0, g, s * g), g, x, slope)
    return unbroadcast(part, x)


@prelu_of.vjp("slope")
def _(g, y, x, slope):
    return unbroadcast(blockwise(lambda g, x: g * minimum(x, 0), g, x), slope)


@operator
def thresholded_relu(x, /, alpha: float = 1.0) -> Array:
    """x where x > alpha, 0 elsewhere."""
    return filled(_beyond, x, alpha)


@thresholded_relu.vjp
def _(g, y, x, *, alpha):
    return gated(g, x, above=alpha)


def _beyond(y, x, bound):
    keep(y, x > bound, x)


@operator
def threshold(x, /, threshold: float, value: float = 0.0) -> Array:
    """`value` where x <= threshold, x elsewhere, NaN included."""
    return filled(_up_to, x, threshold, value)


@threshold.vjp
def _(g, y, x, *, threshold, value):
    return gated(g, x, above=threshold)


def _up_to(y, x, bound, value):
    keep(y, ~(x <= bound), x, value)


@operator
def shrink(x, /, bias: float = 0.0, lambd: float = 0.5) -> Array:
    """x brought `bias` nearer to 0 where |x| > lambd, 0 elsewhere."""
    return filled(_shrunk, x, bias, lambd)


def _shrunk(y, x, bias, lambd):
    xp = namespace(x)
    if bias == lambd >= 0:  # the rest beyond the bounds
        xp.clip(x, -lambd, lambd, out=y)
        xp.subtract(x, y, out=y)
        return
    outside = ~(xp.abs(x, out=y) <= lambd)  # NaN included
    keep(y, outside, x - xp.copysign(x.dtype.type(bias), x) if bias else x)


@shrink.vjp
def _(g, y, x, *, bias, lambd):
    return blockwise(lambda g, x: where(abs_(x) <= lambd, 0, g), g, x)


@operator
def hard_sigmoid(x, /, alpha: float = 0.2, beta: float = 0.5) -> Array:
    """alpha * x + beta held between 0 and 1."""
    return filled(_ramp, x, alpha, beta)


@hard_sigmoid.vjp
def _(g, y, x, *, alpha, beta):
    return gated(g, y, above=0, below=1, slope=alpha)


def _ramp(y, x, alpha, beta):
    namespace(x).multiply(x, alpha, out=y)
    y += beta
    y.clip(0, 1, out=y)


@operator
def hard_swish(x) -> Array:
    """x * (x / 6 + 1/2 held between 0 and 1)"""
    return filled(_hard_swish, x)


@hard_swish.vjp
def _(g, y, x):
    return hard_swish_gradient(g, x)


def _hard_swish(y, x):
    x.clip(-3, 3, out=y)
    y += 3
    y *= 1 / 6
    y *= x
