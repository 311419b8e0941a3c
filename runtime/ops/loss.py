"""Losses with gradients written by hand, for stability or speed."""

from __future__ import annotations

import math

import numpy as np

from burnish.autodiff import Variable
from burnish.backend import Array, namespace
from burnish.operator import operator
from burnish.ops._kernels.blocks import BLOCK, filled
from burnish.ops._shapes import unbroadcast
from burnish.ops.arrays.reduce import reduce_sum
from burnish.ops.elementwise.clip import clip

_FLOOR = -100.0
_STEEPEST = 1e-12


@operator
def softmax_cross_entropy(
    x, classes, shares, offset=0, *, axis: int = -1, summed: bool = False
) -> tuple[Array, Array]:
    """-log(softmax(x)) at one class of each row along an axis, times shares; softmax(x)

    classes and shares have x's shape without the axis. summed: the sum of all and of
    offset instead.
    """
    xp = namespace(x)
    shape, rows = classes.shape, _rows(x, axis)
    rows = rows.astype(np.result_type(x, np.float32), copy=False)
    top = xp.empty((len(rows), 1, rows.shape[2]), rows.dtype)
    total = xp.empty_like(top)
    share = filled(_shares, rows, top, total, whole=2)
    losses = top - rows.reshape(-1)[_places(rows, classes)].reshape(top.shape)
    losses += xp.log(total)
    losses = losses.reshape(shape) * shares
    losses = losses.sum() + offset if summed else losses
    share = share.reshape(x.shape)
    return losses.astype(x.dtype), share.astype(x.dtype, copy=False)


@softmax_cross_entropy.vjp("x")
def _(g, y, x, classes, shares, offset=0, *, axis, summed):
    (slope, share_g), share = g, y[1]
    if share_g is None and not isinstance(slope, Variable):
        return _pull_rows(slope * shares, share, classes, axis)
    xp, axis = namespace(classes), axis % len(x.shape)
    parts = []
    if slope is not None:
        each = xp.arange(x.shape[axis]).reshape(-1, *(1,) * (len(x.shape) - axis - 1))
        chosen = (xp.expand_dims(classes, axis) == each).astype(x.dtype)
        along = slope * shares
        along = along.reshape(*x.shape[:axis], 1, *x.shape[axis + 1 :])
        parts.append((share - chosen) * along)
    if share_g is not None:
        inner = reduce_sum(share_g * share, axes=axis, keepdims=True)
        parts.append(share * (share_g - inner))
    return sum(parts[1:], parts[0])


def _shares(y, x, top, total):
    """Softmax along the middle axis, the greatest there, the sum below the line."""
    if not x.size:
        return
    x.max(axis=1, keepdims=True, out=top)
    xp = namespace(x)
    xp.subtract(x, top, out=y)
    xp.exp(y, out=y)
    y.sum(axis=1, keepdims=True, out=total)
    y *= 1 / total  # a division each costs more


def _pull_rows(slope, share, classes, axis):
    """slope * (share - 1 at the classes, share elsewhere)"""
    rows = _rows(share, axis)
    slope = slope.reshape(len(rows), 1, rows.shape[2])
    pulled = rows * slope
    pulled.reshape(-1)[_places(rows, classes)] -= slope.reshape(-1)
    return pulled.reshape(share.shape).astype(share.dtype, copy=False)


def _rows(x, axis):
    """x (*A, C, *B) as (A, C, B)"""
    axis %= x.ndim
    lead, rest = x.shape[:axis], x.shape[axis + 1 :]
    return x.reshape(math.prod(lead), x.shape[axis], math.prod(rest))


def _places(rows, classes):
    """Where the class of each row of (A, C, B) is, in the array flattened."""
    xp, (a, c, b) = namespace(rows), rows.shape
    first = xp.arange(a) * (c * b)
    if b == 1:
        return first + classes.reshape(-1)
    return (first[:, None] + xp.arange(b) + classes.reshape(a, b) * b).reshape(-1)


@operator
def elementwise_cross_entropy(p, target) -> Array:
    """-(target * log(p) + (1 - target) * log(1 - p)), logarithms held above -100"""
    return -(target * _log(p) + (1 - target) * _log(1 - p))


@elementwise_cross_entropy.vjp("p")
def _(g, y, p, target):
    return unbroadcast(g * (p - target) / clip(p * (1 - p), _STEEPEST), p)


@elementwise_cross_entropy.vjp("target")
def _(g, y, p, target):
    return unbroadcast(g * (clipped_log(1 - p) - clipped_log(p)), target)


@operator
def huber(a, b, *, delta: float = 1.0, summed: bool = False) -> Array:
    """d ** 2 / 2 where |d| <= delta, delta * (|d| - delta / 2) elsewhere; d is a - b

    a and b have one shape. delta: inf gives squares alone. summed: the sum of all.
    """
    dtype = np.result_type(a, b)
    a, b = (x.astype(dtype, copy=False) for x in (a, b))
    formula = (_half_square,) if delta == math.inf else (_huber, delta)
    if not summed:
        return _filled(formula, a, b)
    return _huber_sum(a.reshape(-1), b.reshape(-1), formula).astype(dtype)


@huber.vjp("a")
def _(g, y, a, b, *, delta, summed):
    return _pull_huber(g, a, b, delta)


@huber.vjp("b")
def _(g, y, a, b, *, delta, summed):
    return _pull_huber(-g, a, b, delta)


def _filled(formula, a, b):
    step, *bound = formula
    return filled(step, a, b, *bound)


def _half_square(y, a, b):
    namespace(a).subtract(a, b, out=y)
    y *= y
    y *= 0.5


def _huber(y, a, b, delta):
    namespace(a).subtract(a, b, out=y)
    near = y.clip(-delta, delta)
    y -= near * 0.5
    y *= near


def _huber_sum(a, b, formula):
    """The sum of a formula of a and b: pairwise in a block, of blocks in float64"""
    xp = namespace(a)
    wide = np.result_type(a, np.float32)
    sums = xp.zeros((), np.float64)
    size = BLOCK if xp is np else max(1, a.size)  # a GPU takes all at once
    for start in range(0, a.size, size):
        x, y = (part[start : start + size].astype(wide, copy=False) for part in (a, b))
        sums += _filled(formula, x, y).sum()
    return sums


def _pull_huber(g, a, b, delta):
    """g times the slope of `huber` at a - b"""
    if isinstance(g, Variable):
        return g * clip(a - b, -delta, delta)
    return filled(_huber_slope, a, b, g, delta)


def _huber_slope(y, a, b, g, delta):
    namespace(a).subtract(a, b, out=y)
    y.clip(-delta, delta, out=y)
    y *= g


@operator
def clipped_log(x) -> Array:
    """log(x), held above -100"""
    return _log(x)


@clipped_log.vjp
def _(g, y, x):
    return g / clip(x, _STEEPEST)


def _log(x):
    xp = namespace(x)
    with np.errstate(divide="ignore"):
        return xp.maximum(xp.log(x), _FLOOR)
