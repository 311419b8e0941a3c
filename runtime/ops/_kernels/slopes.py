"""Gradients of activations that are worth an operator of their own.

As many steps in one formula would not stay in cache; here they write into few blocks.
"""

from __future__ import annotations

import math

import numpy as np

from burnish.backend import Array, namespace, special
from burnish.operator import memory_bound, operator
from burnish.ops._kernels.blocks import blockwise, filled, keep
from burnish.ops.elementwise.arithmetic import abs_, square
from burnish.ops.elementwise.compare import where
from burnish.ops.elementwise.elementary import exp, tanh


@operator
def gated(
    g, x, *, above: float, below: float | None = None, slope: float = 1.0
) -> Array:
    """slope * g, 0 where x is at a bound or beyond it; one shape."""
    return filled(_gated, g, x, above, below, slope)


@gated.vjp("g")
def _(g, y, outer, x, *, above, below, slope):
    return gated(g, x, above=above, below=below, slope=slope)


@gated.vjp("x")
def _(g, y, outer, x, *, above, below, slope):
    return None


def _gated(y, g, x, above, below, slope):
    outside = x <= above
    if below is not None:
        outside |= x >= below
    keep(y, ~outside, g)
    if slope != 1:
        y *= slope


@memory_bound
@operator
def dropped(x, kept, *, factor: float) -> Array:
    """x * factor where kept, else 0 (NaN stays); kept broadcasts to x."""
    return blockwise(_dropped, x, kept, factor)


@dropped.vjp("x")
def _(g, y, x, kept, *, factor):
    return dropped(g, kept, factor=factor)


def _dropped(x, kept, factor):
    return x * (kept.astype(x.dtype) * factor)


@operator
def gelu_gradient(g, x, value) -> Array:
    """g times the slope of the exact gelu at x, where that has the value; one shape."""
    return filled(_gelu_slope, x, g, value if x.dtype.itemsize > 2 else None)


@gelu_gradient.vjp("g")
def _(g, y, outer, x, value):
    return gelu_gradient(g, x, value)


@gelu_gradient.vjp("x")
def _(g, y, outer, x, value):
    bend = (2 - square(x)) * exp(square(x) * -0.5) * _DENSITY
    return g * outer * bend


@gelu_gradient.vjp("value")
def _(g, y, outer, x, value):
    return None  # it says nothing that x does not


def _gelu_slope(y, x, g, value):
    """The share below x, and x times the density there."""
    xp = namespace(x)
    if not _put_quotient(y, value, x):
        special.put_normal_share(y, x)
    power, rate = special.fast_power() if xp is np else (xp.exp, 1)
    part = x * x
    part *= -0.5 * rate
    power(part, out=part)
    part *= x
    part *= _DENSITY
    y += part
    y *= g


def _put_quotient(y, value, x):
    """Write value / x into y; False where an x is too small to tell."""
    xp = namespace(x)
    if value is None or xp is not np or not xp.abs(x, out=y).min(initial=1) > _TINY:
        return False
    xp.divide(value, x, out=y)
    return True


_TINY = 1e-30
_DENSITY = 1 / math.sqrt(2 * math.pi)


@operator
def hard_swish_gradient(g, x) -> Array:
    """g times the slope of hard_swish at x; one shape."""
    return filled(_hard_swish_slope, x, g)


@hard_swish_gradient.vjp("g")
def _(g, y, outer, x):
    return hard_swish_gradient(g, x)


@hard_swish_gradient.vjp("x")
def _(g, y, outer, x):
    return g * where(abs_(x) < 3, outer / 3, 0)


def _hard_swish_slope(y, x, g):
    """x / 3 + 1/2 between -3 and 3, 0 below and 1 above."""
    xp = namespace(x)
    part = xp.abs(x)
    part = (part < 3).astype(y.dtype)
    part += 1
    xp.clip(x, -3, 3, out=y)
    y *= 1 / 6
    y *= part
    y += 0.5
    y *= g


@operator
def swish_gradient(g, x, value, *, alpha: float = 1.0) -> Array:
    """g times the slope of swish at x, where that has the value; one shape."""
    return filled(_swish_slope, x, g, value if x.dtype.itemsize > 2 else None, alpha)


@swish_gradient.vjp("g")
def _(g, y, outer, x, value, *, alpha):
    return swish_gradient(g, x, value, alpha=alpha)


@swish_gradient.vjp("x")
def _(g, y, outer, x, value, *, alpha):
    t = tanh(x * (alpha / 2))
    return g * outer * ((1 - square(t)) * (2 - alpha * x * t) * (alpha / 4))


@swish_gradient.vjp("value")
def _(g, y, outer, x, value, *, alpha):
    return None  # it says nothing that x does not


def _swish_slope(y, x, g, value, alpha):
    """s + alpha * x * s * (1 - s), s the sigmoid of alpha * x"""
    xp = namespace(x)
    if not _put_quotient(y, value, x):
        xp.multiply(x, -alpha, out=y)
        xp.exp(y, out=y)
        y += 1
        xp.divide(1, y, out=y)
    part = xp.subtract(1, y)
    part *= x
    if alpha != 1:
        part *= alpha
    part += 1
    y *= part
    y *= g
