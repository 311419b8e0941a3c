"""Gradients of activations that are worth an operator of their own.

As many steps in one formula would not stay in cache; here they write into few blocks.
"""

from __future__ import annotations

import math

from burnish.backend import namespace, special
from burnish.operator import operator
from burnish.ops._blocks import filled
from burnish.ops.arithmetic import abs_, square
from burnish.ops.compare import where
from burnish.ops.elementary import exp, tanh


@operator
def gelu_gradient(g, x):
    """g times the slope of the exact gelu at x; one shape."""
    return filled(_gelu_slope, x, g)


@gelu_gradient.vjp("g")
def _(g, y, outer, x):
    return gelu_gradient(g, x)


@gelu_gradient.vjp("x")
def _(g, y, outer, x):
    bend = (2 - square(x)) * exp(square(x) * -0.5) * _DENSITY
    return g * outer * bend


def _gelu_slope(y, x, g):
    """The share below x, and x times the density there."""
    xp = namespace(x)
    special.put_normal_share(y, x)
    part = x * x
    part *= -0.5
    xp.exp(part, out=part)
    part *= x
    part *= _DENSITY
    y += part
    y *= g


_DENSITY = 1 / math.sqrt(2 * math.pi)


@operator
def hard_swish_gradient(g, x):
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
def swish_gradient(g, x, *, alpha: float = 1.0):
    """g times the slope of swish at x; one shape."""
    return filled(_swish_slope, x, g, alpha)


@swish_gradient.vjp("g")
def _(g, y, outer, x, *, alpha):
    return swish_gradient(g, x, alpha=alpha)


@swish_gradient.vjp("x")
def _(g, y, outer, x, *, alpha):
    t = tanh(x * (alpha / 2))
    return g * outer * ((1 - square(t)) * (2 - alpha * x * t) * (alpha / 4))


def _swish_slope(y, x, g, alpha):
    """s + alpha * x * s * (1 - s), s the sigmoid of alpha * x"""
    xp = namespace(x)
    xp.multiply(x, -alpha, out=y)
    xp.exp(y, out=y)
    y += 1
    xp.reciprocal(y, out=y)
    part = xp.subtract(1, y)
    part *= x
    if alpha != 1:
        part *= alpha
    part += 1
    y *= part
    y *= g
