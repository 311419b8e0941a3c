"""Running maximum and minimum along an axis."""

from __future__ import annotations

import itertools
import math

import numpy as np

from burnish.backend import Array, namespace
from burnish.operator import operator
from burnish.ops._kernels.scatter import put_flat
from burnish.ops._shapes import axes_of, plain
from burnish.ops.arrays.gather import flat_places, take_along_axis


@operator
def cum_max(x, /, axis: int) -> Array:
    """The maximum of the elements up to each one; from a NaN on, NaN.

    The gradient goes to where `cum_max_places` points.
    """
    return _so_far(np.maximum, x, axes_of(axis, x.ndim)[0])


@cum_max.on("cupy")
def _(x, *, axis):
    return _doubled("maximum", x, axis)


@cum_max.vjp
def _(g, y, x, *, axis):
    return sum_runs(g, _reached(plain(x), plain(y)), axis=axis)


@operator
def cum_min(x, /, axis: int) -> Array:
    """The minimum of the elements up to each one; from a NaN on, NaN.

    The gradient goes to where `cum_min_places` points.
    """
    return _so_far(np.minimum, x, axes_of(axis, x.ndim)[0])


@cum_min.on("cupy")
def _(x, *, axis):
    return _doubled("minimum", x, axis)


@cum_min.vjp
def _(g, y, x, *, axis):
    return sum_runs(g, _reached(plain(x), plain(y)), axis=axis)


@operator
def cum_max_places(x, *, axis: int) -> Array:
    """The index of the running maximum, int64; the last of equals, as in PyTorch."""
    return _starts_before(_reached(x, cum_max(x, axis=axis)), axis)


@operator
def cum_min_places(x, *, axis: int) -> Array:
    """The index of the running minimum, int64; the last of equals, as in PyTorch."""
    return _starts_before(_reached(x, cum_min(x, axis=axis)), axis)


@operator
def sum_runs(x, starts, *, axis: int) -> Array:
    """Runs along an axis added up at their starts (booleans), 0 elsewhere.

    The first element of every line is a start.
    """
    moved, where_ = np.moveaxis(x, axis, -1), np.moveaxis(starts, axis, -1)
    y = np.zeros(moved.shape, x.dtype)
    places = np.flatnonzero(where_)
    if len(places):
        y.reshape(-1)[places] = np.add.reduceat(moved.reshape(-1), places)
    return np.moveaxis(y, -1, axis)


@sum_runs.on("cupy")
def _(x, starts, *, axis):
    places = flat_places(x.shape, _starts_before(starts, axis), axis)
    return put_flat(x, places, shape=x.shape)


@sum_runs.vjp("x")
def _(g, y, x, starts, *, axis):
    return take_along_axis(g, _starts_before(plain(starts), axis), axis=axis)


def _starts_before(starts: Array, axis: int) -> Array:
    """The index at which each element's run starts."""
    xp, axis = namespace(starts), axes_of(axis, starts.ndim)[0]
    along = xp.arange(starts.shape[axis]).reshape(-1, *(1,) * (starts.ndim - 1 - axis))
    return cum_max(xp.where(starts, along, 0), axis=axis)


def _reached(x: Array, y: Array) -> Array:
    """Where the scan y of x takes x's element; a NaN is not equal to itself."""
    return (x == y) | (x != x)


def _so_far(best: np.ufunc, x: Array, axis: int) -> Array:
    """best.accumulate, which takes an element at a time, as `cum_sum`'s does."""
    inner = math.prod(x.shape[axis + 1 :])
    if inner == 1 and x.size >= 1 << 14 and x.shape[axis] >= 8 * _STRIP:
        return _by_strips(best, x.reshape(-1, x.shape[axis])).reshape(x.shape)
    if inner < 128:
        return best.accumulate(x, axis)
    y = x.copy()
    for before, row in itertools.pairwise(np.moveaxis(y, axis, 0)):
        best(before, row, out=row)
    return y


def _by_strips(best: np.ufunc, x: Array) -> Array:
    """The same of rows: of all their short strips side by side, then of the strips."""
    count = x.shape[1] // _STRIP
    end = count * _STRIP
    strips = np.array(x[:, :end].reshape(-1, _STRIP).T, order="C")
    for before, part in itertools.pairwise(strips):
        best(before, part, out=part)
    lines = strips.reshape(_STRIP, len(x), count)
    ends = best.accumulate(lines[-1], 1)
    best(lines[:, :, 1:], ends[:, :-1], out=lines[:, :, 1:])
    y = np.empty_like(x, order="C")
    y[:, :end].reshape(len(x), count, _STRIP)[...] = np.moveaxis(lines, 0, -1)
    y[:, end:] = best(best.accumulate(x[:, end:], 1), ends[:, -1:])
    return y


_STRIP = 8


def _doubled(which: str, x: Array, axis: int) -> Array:
    """CuPy accumulates sums alone: over spans of 1, 2, 4, ... instead."""
    xp = namespace(x)
    y = xp.moveaxis(x, axis, 0).copy()
    span = 1
    while span < len(y):
        y[span:] = getattr(xp, which)(y[span:], y[:-span].copy())
        span *= 2
    return xp.moveaxis(y, 0, axis)
