"""Scores along an axis to probabilities: softmax and its variants."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend import Array, namespace
from burnish.operator import composed, operator
from burnish.ops._kernels.blocks import blockwise, filled
from burnish.ops._shapes import axes_of
from burnish.ops.arrays.reduce import reduce_max, reduce_sum
from burnish.ops.elementwise.arithmetic import maximum
from burnish.ops.elementwise.elementary import exp


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
