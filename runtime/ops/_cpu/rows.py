"""Softmax along an axis, cross entropy, and their gradients by kernels."""

from __future__ import annotations

import functools
from math import prod

import numpy as np

from burnish.ops import loss
from burnish.ops._cpu.call import dense, launch, suits
from burnish.ops.activation import probabilities
from burnish.ops.sequences import attention

_GAIN = 16
"""NumPy takes several calls for a row of few numbers, a kernel one."""

_EXPONENTIAL = 20
"""The cost of an element where there is an exponential."""


def _register(function, **fields):
    """Kernels of a softmax and of its gradient."""

    @function.on("numpy")
    def _(x, **options):
        axis = options.get("axis", -1)
        if not (_is_axis(x, axis) and suits(x, gain=_GAIN)):
            return function.value(x, **options)
        y = np.empty(x.shape, x.dtype)
        launch(
            "softmax", _EXPONENTIAL * x.size, x=dense(x), out=y, **_sides(x, axis),
            **fields,
        )  # fmt: skip
        return y

    @function.vjp("x", on="numpy")
    def _(g, y, x, **options):
        if not (x.ndim and suits(y, g, gain=_GAIN)):
            return NotImplemented
        dx = np.empty(y.shape, y.dtype)
        launch(
            "softmax_gradient", 6 * y.size, g=dense(g), y=dense(y), out=dx,
            **_sides(y, options.get("axis", -1)), is_log=fields["is_log"],
        )  # fmt: skip
        return dx


def _is_axis(x, axis):
    return -x.ndim <= axis < x.ndim


_register(probabilities.softmax, zero_if_empty=0, is_log=0)
_register(probabilities.log_softmax, zero_if_empty=0, is_log=1)
_register(attention.softmax_or_zero, zero_if_empty=1, is_log=0)


@loss.softmax_cross_entropy.on("numpy")
def _(x, classes, shares, offset=0, *, axis=-1, summed=False):
    sides = suits(x, shares, gain=_GAIN) and _sides_of_classes(x, classes, shares, axis)
    if not sides:
        return loss.softmax_cross_entropy.value(
            x, classes, shares, offset, axis=axis, summed=summed
        )
    softmax, losses = np.empty(x.shape, x.dtype), np.empty(classes.shape, x.dtype)
    launch(
        "cross_entropy", _EXPONENTIAL * x.size, x=dense(x), classes=dense(classes),
        by=dense(shares), softmax=softmax, out=losses, **sides,
    )  # fmt: skip
    return np.add.reduce(losses, None, initial=offset) if summed else losses, softmax


@loss.softmax_cross_entropy.vjp("x", on="numpy")
def _(g, y, x, classes, shares, offset=0, *, axis, summed):
    slope, of_softmax = g
    known = of_softmax is None and suits(y[1], slope, shares, gain=_GAIN)
    sides = known and _sides_of_classes(x, classes, shares, axis)
    if not sides:
        return NotImplemented
    dx = np.empty(x.shape, x.dtype)
    launch(
        "cross_entropy_gradient", 4 * x.size, g=dense(slope), softmax=dense(y[1]),
        classes=dense(classes), by=dense(shares), out=dx, **sides,
        is_summed=summed,
    )  # fmt: skip
    return dx


def _sides(x, axis):
    """x's sizes ahead of an axis, of it, and behind it."""
    return _sides_of(x.shape, axis)[0]


@functools.lru_cache(1 << 10)
def _sides_of(shape, axis):
    """`_sides` of a shape; and the shape without the axis."""
    axis %= len(shape)
    ahead, behind = shape[:axis], shape[axis + 1 :]
    sides = {"rows": prod(ahead), "width": shape[axis], "inner": prod(behind)}
    return sides, ahead + behind


def _sides_of_classes(x, classes, shares, axis):
    """`_sides` where each place without the axis has a class and a share; else None."""
    if not x.ndim or classes.dtype != np.int64:
        return None
    sides, rest = _sides_of(x.shape, axis)
    return sides if shares.shape == classes.shape == rest else None
