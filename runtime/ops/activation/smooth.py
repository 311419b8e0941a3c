"""Smooth activations and gates; dropout."""

from __future__ import annotations

import math
from typing import Any

from burnish.autodiff import Variable
from burnish.backend import Array, Device, namespace, special
from burnish.draws import keep_mask
from burnish.errors import InputError
from burnish.operator import composed, operator
from burnish.ops._kernels.blocks import blockwise, filled, positive
from burnish.ops._kernels.slopes import dropped, gelu_gradient, swish_gradient
from burnish.ops._shapes import axes_of
from burnish.ops.arrays.shape import split
from burnish.ops.elementwise.arithmetic import abs_, minimum, square
from burnish.ops.elementwise.compare import where
from burnish.ops.elementwise.elementary import exp, tanh


@operator
def elu(x, /, alpha: float = 1.0) -> Array:
    """x where x > 0, alpha * (exp(x) - 1) elsewhere."""
    return filled(_exponential, x, alpha, 1)


@elu.vjp
def _(g, y, x, *, alpha):
    return blockwise(_exponential_slope, g, x, alpha, 1)


def _exponential(y, x, alpha, width):
    """max(x, 0) + alpha * (exp(min(x, 0) / width) - 1): one of them is 0."""
    xp = namespace(x)
    xp.minimum(x, 0, out=y)
    if width != 1:
        y /= width
    xp.expm1(y, out=y)
    if alpha != 1:
        y *= alpha
    y += positive(x)


def _exponential_slope(g, x, alpha, width):
    below = exp(minimum(x, 0) if width == 1 else minimum(x, 0) / width)
    share = alpha / width
    if share == 1:  # exp(0) is already what holds above 0
        return g * below
    return g * where(x > 0, 1, share * below)


@composed
def selu(
    x: Any,
    alpha: float = 1.67326319217681884765625,
    gamma: float = 1.05070102214813232421875,
) -> Array:
    """gamma * elu(x, alpha): keeps mean 0 and variance 1 through many layers."""
    return gamma * elu(x, alpha=alpha)


@operator
def celu(x, /, alpha: float = 1.0) -> Array:
    """x where x > 0, alpha * (exp(x / alpha) - 1) elsewhere."""
    return filled(_exponential, x, alpha, alpha)


@celu.vjp
def _(g, y, x, *, alpha):
    return blockwise(_exponential_slope, g, x, alpha, alpha)


@operator
def gelu(x, /, approximate: str = "none") -> Array:
    """x times the normal distribution's share below x; "tanh" for the cheaper form."""
    if approximate not in GELUS:
        raise InputError(
            f"gelu: expected approximate 'none' or 'tanh', got {approximate!r}"
        )
    return filled(GELUS[approximate], x)


@gelu.vjp
def _(g, y, x, *, approximate):
    if approximate == "tanh":
        return blockwise(_gelu_tanh_slope, g, x)
    return gelu_gradient(g, x, y)


def _gelu(y, x):
    special.put_normal_share(y, x, times=x)


def _gelu_tanh(y, x):
    xp = namespace(x)
    xp.multiply(x, x, out=y)
    y *= -2 * _GELU * _CUBE
    y -= 2 * _GELU
    y *= x
    xp.exp(y, out=y)
    y += 1
    xp.divide(x, y, out=y)


GELUS = {"none": _gelu, "tanh": _gelu_tanh}
"""By `approximate`: what writes the GELU of x into y."""


def _gelu_tanh_slope(g, x):
    square = x * x
    t = tanh(x * (_GELU + _GELU * _CUBE * square))
    slope = 0.5 * _GELU + 1.5 * _GELU * _CUBE * square
    return g * (0.5 * (1 + t) + x * (1 - t * t) * slope)


_GELU = math.sqrt(2 / math.pi)
_CUBE = 0.044715


@operator
def sigmoid(x) -> Array:
    """1 / (1 + exp(-x)), without overflow."""
    return filled(_sigmoid, x, 1)


@sigmoid.vjp
def _(g, y, x):
    return blockwise(lambda g, y: g * (y * (1 - y)), g, y)


def _sigmoid(y, x, alpha, times=1):
    xp = namespace(x)
    xp.multiply(x, -alpha, out=y)
    xp.exp(y, out=y)
    y += 1
    xp.divide(times, y, out=y)


@operator
def swish(x, /, alpha: float = 1.0) -> Array:
    """x * sigmoid(alpha * x)"""
    return filled(_swish, x, alpha)


@swish.vjp
def _(g, y, x, *, alpha):
    return swish_gradient(g, x, y, alpha=alpha)


def _swish(y, x, alpha):
    _sigmoid(y, x, alpha, times=x)


@composed
def silu(x: Any) -> Array:
    """x * sigmoid(x)"""
    return swish(x)


@operator
def softplus(x) -> Array:
    """log(1 + exp(x)), without overflow."""
    return filled(_softplus, x)


@softplus.vjp
def _(g, y, x):
    return blockwise(lambda g, x: g * sigmoid(x), g, x)


def _softplus(y, x):
    xp = namespace(x)
    xp.abs(x, out=y)
    xp.negative(y, out=y)
    xp.exp(y, out=y)
    xp.log1p(y, out=y)
    y += positive(x)


@operator
def log_sigmoid(x) -> Array:
    """log(sigmoid(x)), without overflow."""
    return filled(_log_sigmoid, x)


@log_sigmoid.vjp
def _(g, y, x):
    return blockwise(lambda g, x: g * sigmoid(-x), g, x)


def _log_sigmoid(y, x):
    _softplus(y, -x)
    namespace(x).negative(y, out=y)


@composed
def mish(x: Any) -> Array:
    """x * tanh(softplus(x))"""
    return x * tanh(softplus(x))


@operator
def softsign(x) -> Array:
    """x / (1 + |x|)"""
    return x / (1 + abs(x))


@softsign.vjp
def _(g, y, x):
    return blockwise(lambda g, x: g / square(1 + abs_(x)), g, x)


@composed
def glu(x: Any, axis: int = -1) -> Array:
    """One half of x along an axis, times the sigmoid of the other half."""
    if x.shape[axes_of(axis, len(x.shape))[0]] % 2:
        raise InputError(f"glu: expected an even length of axis {axis}, got {x.shape}")
    halves: Any = split(x, num=2, axis=axis)
    return sigmoid_gate(*halves)


@operator
def sigmoid_gate(a, b) -> Array:
    """a * sigmoid(b), of one shape."""
    return filled(_sigmoid_gate, b, a)


@sigmoid_gate.vjp("a")
def _(g, y, a, b):
    return sigmoid_gate(g, b)


@sigmoid_gate.vjp("b")
def _(g, y, a, b):
    return blockwise(_sigmoid_gate_slope, g, a, b)


def _sigmoid_gate(y, b, a):
    _sigmoid(y, b, 1, times=a)


def _sigmoid_gate_slope(g, a, b):
    share = sigmoid(b)
    return g * a * (share * (1 - share))


@composed
def dropout(x: Any, p: float = 0.5) -> Array:
    """x with each element zeroed with probability p, the others scaled to make up."""
    if not p:
        return x
    device = x.device if isinstance(x, Variable) else Device.of(x)
    kept = keep_mask(x.shape, 1 - p, device)
    return dropped(x, kept, factor=1 / (1 - p) if p < 1 else 1.0)
