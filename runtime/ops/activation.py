"""Activations, softmax and dropout."""

from __future__ import annotations

import math
from typing import Any

from burnish import rng
from burnish.autodiff import Variable
from burnish.backend import Device, namespace, special
from burnish.operator import operator
from burnish.ops._shapes import unbroadcast
from burnish.ops.arithmetic import abs_, clip, maximum, minimum, square
from burnish.ops.compare import where
from burnish.ops.elementary import erf, exp, tanh
from burnish.ops.reduce import reduce_max, reduce_sum
from burnish.ops.shape import split


@operator
def relu(x):
    """The greater of x and 0."""
    return namespace(x).maximum(x, 0)


@relu.vjp
def _(g, y, x):
    return where(y > 0, g, 0)


@operator
def relu6(x):
    """x held between 0 and 6."""
    return namespace(x).clip(x, 0, 6)


@relu6.vjp
def _(g, y, x):
    return where((x > 0) & (x < 6), g, 0)


@operator
def leaky_relu(x, *, alpha: float = 0.01):
    """x where x > 0, alpha * x elsewhere."""
    return namespace(x).where(x > 0, x, alpha * x)


@leaky_relu.vjp
def _(g, y, x, *, alpha):
    return where(x > 0, g, alpha * g)


@operator
def prelu(x, slope):
    """x where x > 0, slope * x elsewhere; slope broadcasts to x."""
    return namespace(x).where(x > 0, x, slope * x)


@prelu.vjp("x")
def _(g, y, x, slope):
    return unbroadcast(where(x > 0, g, slope * g), x)


@prelu.vjp("slope")
def _(g, y, x, slope):
    return unbroadcast(where(x > 0, 0, g * x), slope)


@operator
def thresholded_relu(x, *, alpha: float = 1.0):
    """x where x > alpha, 0 elsewhere."""
    return namespace(x).where(x > alpha, x, 0)


@thresholded_relu.vjp
def _(g, y, x, *, alpha):
    return where(x > alpha, g, 0)


@operator
def shrink(x, *, bias: float = 0.0, lambd: float = 0.5):
    """x brought `bias` nearer to 0 where |x| > lambd, 0 elsewhere."""
    xp = namespace(x)
    return xp.where(x > lambd, x - bias, xp.where(x < -lambd, x + bias, 0))


@shrink.vjp
def _(g, y, x, *, bias, lambd):
    return where(abs_(x) > lambd, g, 0)


@operator
def elu(x, *, alpha: float = 1.0):
    """x where x > 0, alpha * (exp(x) - 1) elsewhere."""
    xp = namespace(x)
    return xp.where(x > 0, x, alpha * xp.expm1(xp.minimum(x, 0)))


@elu.vjp
def _(g, y, x, *, alpha):
    return where(x > 0, g, g * (alpha * exp(minimum(x, 0))))


def selu(
    x: Any,
    *,
    alpha: float = 1.67326319217681884765625,
    gamma: float = 1.05070102214813232421875,
) -> Any:
    """gamma * elu(x, alpha): keeps mean 0 and variance 1 through many layers."""
    return gamma * elu(x, alpha=alpha)


@operator
def celu(x, *, alpha: float = 1.0):
    """x where x > 0, alpha * (exp(x / alpha) - 1) elsewhere."""
    xp = namespace(x)
    return xp.where(x > 0, x, alpha * xp.expm1(xp.minimum(x, 0) / alpha))


@celu.vjp
def _(g, y, x, *, alpha):
    return where(x > 0, g, g * exp(minimum(x, 0) / alpha))


@operator
def gelu(x, *, approximate: str = "none"):
    """x times the normal distribution's share below x; "tanh" for the cheaper form."""
    if approximate == "tanh":
        return 0.5 * x * (1 + namespace(x).tanh(_GELU * (x + _CUBE * x * x * x)))
    return 0.5 * x * (1 + special.erf(x * 0.5**0.5))


@gelu.vjp
def _(g, y, x, *, approximate):
    if approximate == "tanh":
        t = tanh(_GELU * (x + _CUBE * x * x * x))
        slope = _GELU * (1 + 3 * _CUBE * x * x)
        return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope)
    below = 0.5 * (1 + erf(x * 0.5**0.5))
    return g * (below + x * exp(-0.5 * x * x) / math.sqrt(2 * math.pi))


_GELU = math.sqrt(2 / math.pi)
_CUBE = 0.044715


@operator
def sigmoid(x):
    """1 / (1 + exp(-x)), without overflow."""
    return _sigmoid(x)


@sigmoid.vjp
def _(g, y, x):
    return g * (y * (1 - y))


def _sigmoid(x: Any) -> Any:
    xp = namespace(x)
    z = xp.exp(xp.minimum(-x, _EXPONENTS.get(x.dtype.name, 88)))
    z += 1
    return 1 / z


_EXPONENTS = {"float16": 11, "float64": 709}  # the greatest whose exp is finite


@operator
def swish(x, *, alpha: float = 1.0):
    """x * sigmoid(alpha * x)"""
    return x * _sigmoid(alpha * x)


@swish.vjp
def _(g, y, x, *, alpha):
    s = sigmoid(alpha * x)
    return g * (s * (1 + alpha * x * (1 - s)))


def silu(x: Any) -> Any:
    """x * sigmoid(x)"""
    return swish(x)


@operator
def softplus(x):
    """log(1 + exp(x)), without overflow."""
    xp = namespace(x)
    return xp.maximum(x, 0) + xp.log1p(xp.exp(-abs(x)))


@softplus.vjp
def _(g, y, x):
    return g * sigmoid(x)


def log_sigmoid(x: Any) -> Any:
    """log(sigmoid(x)), without overflow."""
    return -softplus(-x)


def mish(x: Any) -> Any:
    """x * tanh(softplus(x))"""
    return x * tanh(softplus(x))


@operator
def softsign(x):
    """x / (1 + |x|)"""
    return x / (1 + abs(x))


@softsign.vjp
def _(g, y, x):
    return g / square(1 + abs_(x))


@operator
def hard_sigmoid(x, *, alpha: float = 0.2, beta: float = 0.5):
    """alpha * x + beta held between 0 and 1."""
    return namespace(x).clip(alpha * x + beta, 0, 1)


@hard_sigmoid.vjp
def _(g, y, x, *, alpha, beta):
    return where((y > 0) & (y < 1), alpha * g, 0)


def hard_swish(x: Any) -> Any:
    """x * (x / 6 + 1/2 held between 0 and 1)"""
    return x * clip(x / 6 + 0.5, 0, 1)


def glu(x: Any, *, axis: int = -1) -> Any:
    """One half of x along an axis, times the sigmoid of the other half."""
    a, b = split(x, num=2, axis=axis)
    return a * sigmoid(b)


@operator
def softmax(x, *, axis: int = -1):
    """exp(x), scaled to add up to 1 along an axis."""
    y = namespace(x).exp(x - _top(x, axis))
    y /= y.sum(axis=axis, keepdims=True)
    return y


@softmax.vjp
def _(g, y, x, *, axis):
    weighted = g * y
    return weighted - y * reduce_sum(weighted, axes=axis, keepdims=True)


def softmin(x: Any, *, axis: int = -1) -> Any:
    """softmax(-x)"""
    return softmax(-x, axis=axis)


def quiet_softmax(x: Any, *, axis: int = -1) -> Any:
    """exp(x) scaled by 1 + the sum along an axis: where all are low, all are near 0."""
    top = maximum(reduce_max(x, axes=axis, keepdims=True), 0)
    y = exp(x - top)
    return y / (exp(-top) + reduce_sum(y, axes=axis, keepdims=True))


@operator
def log_softmax(x, *, axis: int = -1):
    """log(softmax(x)), without overflow."""
    xp = namespace(x)
    y = x - _top(x, axis)
    y -= xp.log(xp.exp(y).sum(axis=axis, keepdims=True))
    return y


@log_softmax.vjp
def _(g, y, x, *, axis):
    return g - exp(y) * reduce_sum(g, axes=axis, keepdims=True)


def _top(x: Any, axis: int) -> Any:
    """The greatest along an axis; 0 where there is nothing."""
    return x.max(axis=axis, keepdims=True) if x.size else 0


@operator
def hardmax(x, *, axis: int = -1):
    """1 where the greatest along an axis is (the first of equal ones), 0 elsewhere."""
    xp = namespace(x)
    place = xp.expand_dims(x.argmax(axis), axis)
    shape = [1] * x.ndim
    shape[axis] = -1
    return (xp.arange(x.shape[axis]).reshape(shape) == place).astype(x.dtype)


@hardmax.vjp
def _(g, y, x, *, axis):
    return None


def dropout(x: Any, *, p: float = 0.5) -> Any:
    """x with each element zeroed with probability p, the others scaled to make up."""
    if not p:
        return x
    device = x.device if isinstance(x, Variable) else Device.of(x)
    kept = rng.keep_mask(x.shape, 1 - p, device).astype(x.dtype)
    return x * (kept / (1 - p) if p < 1 else kept)
