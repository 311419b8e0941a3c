"""Resizing along an axis, its adjoint, and that of sums of windows, by kernels."""

from __future__ import annotations

import functools
from math import prod

import numpy as np

from burnish.ops._cpu.call import dense, launch, suits
from burnish.ops._kernels.axis_tables import adjoint
from burnish.ops._kernels.window import Window
from burnish.ops.spatial import image, pool

_WIDE = 8
"""Elements behind an axis from which its places are vectors; else products win."""

_TAPS = 16
"""Places at most that share one; products of more are as fast."""


@image.resample.on("numpy")
def _(x, index, weight, *, axis):
    if _fits(x, axis, index, x.shape[axis]):
        return _taken(x, axis, index, weight)
    return image.resample.value(x, index, weight, axis=axis)


@image.resample_adjoint.on("numpy")
def _(x, index, weight, *, axis, size):
    if _fits(x, axis, index, size) and (table := adjoint(index, weight, size, _TAPS)):
        return _taken(x, axis, *table)
    return image.resample_adjoint.value(x, index, weight, axis=axis, size=size)


def _fits(x, axis, index, size):
    """Whether a kernel resizes this axis, and the places it names are there."""
    if not suits(x) or prod(x.shape[axis % x.ndim + 1 :]) < _WIDE or not index.size:
        return False
    return index.min() >= 0 and index.max() < size


@pool.window_spread.on("numpy")
def _(x, **options):
    w = pool.spread_window(**pool.window_spread.defaults | options)
    known = suits(x) and x.shape[2:] == w.out
    tables = _spread(w, tuple(options["sizes"])) if known else None
    if tables is None:
        return pool.window_spread.value(x, **options)
    for axis in reversed(range(2, x.ndim)):
        x = _taken(x, axis, *tables[axis - 2])
    return x


@functools.lru_cache(1 << 8)
def _spread(w: Window, sizes: tuple[int, ...]):
    """For each axis the windows that see each place, and whether they do; None: many"""
    tables = []
    for n, kernel, step, dilation, pads, count in zip(
        sizes, w.kernel, w.stride, w.dilation, w.pads, w.out, strict=True
    ):
        first = np.arange(count) * step - pads[0]
        index = first[:, None] + np.arange(kernel) * dilation
        inside = (index >= 0) & (index < n)
        tables.append(adjoint(np.where(inside, index, 0), inside, n, _TAPS))
    return None if None in tables else tables


def _taken(x, axis, index, weight):
    """Sums along an axis: of the places that index names, times their weights."""
    axis %= x.ndim
    lead, rest = x.shape[:axis], x.shape[axis + 1 :]
    y = np.empty((*lead, len(index), *rest), x.dtype)
    launch(
        "resample", 4 * y.size, x=dense(x), index=index.astype(np.int32),
        weight=dense(weight.astype(np.float32)), out=y, outer=prod(lead),
        size=x.shape[axis], places=len(index), inner=prod(rest), taps=index.shape[1],
    )  # fmt: skip
    return y
