"""Activations, softmax and dropout."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burnish.autodiff import Variable
from burnish.backend import Array, Device, namespace, special
from burnish.draws import keep_mask
from burnish.errors import InputError
from burnish.operator import composed, operator
from burnish.ops._kernels.blocks import blockwise, filled, keep, positive
from burnish.ops._kernels.slopes import (
    gated,
    gelu_gradient,
    hard_swish_gradient,
    swish_gradient,
)
from burnish.ops._shapes import axes_of, cast, unbroadcast
from burnish.ops.arithmetic import abs_, maximum, minimum, square
from burnish.ops.compare import where
from burnish.ops.elementary import exp, tanh
from burnish.ops.reduce import reduce_max, reduce_sum
from burnish.ops.shape import split


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
    if bias == lambd >= 0:  # what is left beyond the bounds
        xp.clip(x, -lambd, lambd, out=y)
        xp.subtract(x, y, out=y)
        return
    outside = ~(xp.abs(x, out=y) <= lambd)  # NaN included
    keep(y, outside, x - xp.copysign(x.dtype.type(bias), x) if bias else x)


@shrink.vjp
def _(g, y, x, *, bias, lambd):
    return blockwise(lambda g, x: where(abs_(x) <= lambd, 0, g), g, x)


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
    if approximate not in ("none", "tanh"):
        raise InputError(
            f"gelu: expected approximate 'none' or 'tanh', got {approximate!r}"
        )
    return filled(_gelu_tanh if approximate == "tanh" else _gelu, x)


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


@composed
def log_sigmoid(x: Any) -> Array:
    """log(sigmoid(x)), without overflow."""
    return -softplus(-x)


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


@composed
def glu(x: Any, axis: int = -1) -> Array:
    """One half of x along an axis, times the sigmoid of the other half."""
    if x.shape[axes_of(axis, len(x.shape))[0]] % 2:
        raise InputError(f"glu: expected an even length of axis {axis}, got {x.shape}")
    a, b = split(x, num=2, axis=axis)
    return a * sigmoid(b)


@operator
def softmax(x, /, axis: int = -1) -> Array:
    """exp(x), scaled to add up to 1 along an axis.

    Half precision is rounded at every step, as ONNX's definition is.
    """
    axis = _from_the_end(axis, x.ndim)
    if x.dtype == np.float16 and x.size:
        y = namespace(x).exp(x - x.max(axis=axis, keepdims=True))
        return y / y.sum(axis=axis, keepdims=True)
    return filled(_softmax, x, axis, whole=-axis)


@softmax.vjp
def _(g, y, x, *, axis):
    return softmax_gradient(g, y, axis)


def softmax_gradient(g: Any, y: Any, axis: int) -> Any:
    """The gradient of a softmax's input; 0 where y is."""
    axis = _from_the_end(axis, len(y.shape))
    return blockwise(_softmax_slope, g, y, axis, whole=-axis)


def _softmax(y, x, axis):
    """Moderate values are not shifted: that saves each row's maximum."""
    if not x.size:
        return
    xp = namespace(x)
    if xp is np and x.max() < _MODERATE:
        total = xp.exp(x, out=y).sum(axis=axis, keepdims=True)
        if total.min() > 1 / _MODERATE:
            y /= total
            return
    xp.subtract(x, x.max(axis=axis, keepdims=True), out=y)
    xp.exp(y, out=y)
    y /= y.sum(axis=axis, keepdims=True)


def _softmax_slope(g, y, axis):
    weighted = g * y
    return weighted - y * reduce_sum(weighted, axes=axis, keepdims=True)


def _from_the_end(axis, ndim):
    """The axis, counted from the last, which is -1; a scalar is a row of one."""
    return axes_of(axis, max(ndim, 1))[0] - max(ndim, 1)


_MODERATE = 50  # a sum of exp of such numbers is far from any overflow


@composed
def softmin(x: Any, axis: int = -1) -> Array:
    """softmax(-x)"""
    return softmax(-x, axis=axis)


@composed
def quiet_softmax(x: Any, axis: int = -1) -> Array:
    """exp(x) scaled by 1 + the sum along an axis: where all are low, all are near 0."""
    top = maximum(reduce_max(x, axes=axis, keepdims=True), 0)
    y = exp(x - top)
    return y / (exp(-top) + reduce_sum(y, axes=axis, keepdims=True))


@operator
def log_softmax(x, /, axis: int = -1) -> Array:
    """log(softmax(x)), without overflow."""
    axis = _from_the_end(axis, x.ndim)
    return filled(_log_softmax, x, axis, whole=-axis)


@log_softmax.vjp
def _(g, y, x, *, axis):
    axis = _from_the_end(axis, len(x.shape))
    return blockwise(_log_softmax_slope, g, y, axis, whole=-axis)


def _log_softmax(y, x, axis):
    if not x.size:
        return
    xp = namespace(x)
    xp.subtract(x, x.max(axis=axis, keepdims=True), out=y)
    y -= xp.log(xp.exp(y).sum(axis=axis, keepdims=True))


def _log_softmax_slope(g, y, axis):
    return g - exp(y) * reduce_sum(g, axes=axis, keepdims=True)


@operator
def hardmax(x, /, axis: int = -1) -> Array:
    """1 at the maximum along an axis (the first of equal ones), 0 elsewhere."""
    if not x.size:
        return x.copy()
    xp = namespace(x)
    place = xp.expand_dims(x.argmax(axis), axis)
    shape = [1] * x.ndim
    shape[axis] = -1
    return (xp.arange(x.shape[axis]).reshape(shape) == place).astype(x.dtype)


@hardmax.vjp
def _(g, y, x, *, axis):
    return None


@composed
def dropout(x: Any, p: float = 0.5) -> Array:
    """x with each element zeroed with probability p, the others scaled to make up."""
    if not p:
        return x
    device = x.device if isinstance(x, Variable) else Device.of(x)
    kept = cast(keep_mask(x.shape, 1 - p, device), dtype=x.dtype)
    return x * (kept / (1 - p) if p < 1 else kept)
