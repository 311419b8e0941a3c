"""Softmax along an axis, cross entropy, and their gradients by kernels."""

from __future__ import annotations

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
    known = suits(x, shares, gain=_GAIN) and _are_classes(x, classes, shares, axis)
    if not known:
        return loss.softmax_cross_entropy.value(
            x, classes, shares, offset, axis=axis, summed=summed
        )
    softmax, losses = np.empty(x.shape, x.dtype), np.empty(classes.shape, x.dtype)
    launch(
        "cross_entropy", _EXPONENTIAL * x.size, x=dense(x), classes=dense(classes),
        by=dense(shares), softmax=softmax, out=losses, **_sides(x, axis),
    )  # fmt: skip
    return np.add.reduce(losses, None, initial=offset) if summed else losses, softmax


@loss.softmax_cross_entropy.vjp("x", on="numpy")
def _(g, y, x, classes, shares, offset=0, *, axis, summed):
    slope, of_softmax = g
    known = of_softmax is None and suits(y[1], slope, shares, gain=_GAIN)
    if not (known and _are_classes(x, classes, shares, axis)):
        return NotImplemented
    dx = np.empty(x.shape, x.dtype)
    launch(
        "cross_entropy_gradient", 4 * x.size, g=dense(slope), softmax=dense(y[1]),
        classes=dense(classes), by=dense(shares), out=dx, **_sides(x, axis),
        is_summed=summed,
    )  # fmt: skip
    return dx


def _sides(x, axis):
    """x's sizes ahead of an axis, of it, and behind it."""
    axis %= x.ndim
    rows, inner = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
    return {"rows": rows, "width": x.shape[axis], "inner": inner}


def _are_classes(x, classes, shares, axis):
    """Whether each place of x without the axis has a class and a share of its own."""
    if not x.ndim or classes.dtype != np.int64:
        return False
    axis %= x.ndim
    return shares.shape == classes.shape == x.shape[:axis] + x.shape[axis + 1 :]
