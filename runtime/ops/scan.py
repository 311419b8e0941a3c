"""The greatest and the least so far, along an axis."""

from __future__ import annotations

from typing import Any

from burnish.backend import Array, namespace
from burnish.operator import operator
from burnish.ops._scatter import put_flat
from burnish.ops._shapes import axes_of, plain
from burnish.ops.index import flat_places


@operator
def cum_max(x, *, axis: int):
    """The greatest of the elements up to each one; from a NaN on, NaN.

    The gradient goes to where `cum_max_places` points.
    """
    return namespace(x).maximum.accumulate(x, axes_of(axis, x.ndim)[0])


@cum_max.on("cupy")
def _(x, *, axis):
    return _doubled("maximum", x, axis)


@cum_max.vjp
def _(g, y, x, *, axis):
    return _put(g, cum_max_places(plain(x), axis=axis), axis)


@operator
def cum_min(x, *, axis: int):
    """The least of the elements up to each one; from a NaN on, NaN.

    The gradient goes to where `cum_min_places` points.
    """
    return namespace(x).minimum.accumulate(x, axes_of(axis, x.ndim)[0])


@cum_min.on("cupy")
def _(x, *, axis):
    return _doubled("minimum", x, axis)


@cum_min.vjp
def _(g, y, x, *, axis):
    return _put(g, cum_min_places(plain(x), axis=axis), axis)


@operator
def cum_max_places(x, *, axis: int):
    """Where the greatest so far is, int64; of equal ones the last, as in PyTorch."""
    return _places(x, cum_max(x, axis=axis), axis)


@operator
def cum_min_places(x, *, axis: int):
    """Where the least so far is, int64; of equal ones the last, as in PyTorch."""
    return _places(x, cum_min(x, axis=axis), axis)


def _places(x: Array, y: Array, axis: int) -> Array:
    xp, axis = namespace(x), axes_of(axis, x.ndim)[0]
    along = xp.arange(x.shape[axis]).reshape(-1, *(1,) * (x.ndim - 1 - axis))
    reached = (x == y) | (x != x)  # a NaN is not equal to itself
    return cum_max(xp.where(reached, along, 0), axis=axis)


def _put(g: Any, places: Array, axis: int) -> Any:
    return put_flat(g, flat_places(g.shape, places, axis), shape=g.shape)


def _doubled(which: str, x: Array, axis: int) -> Array:
    """CuPy accumulates sums alone: over spans of 1, 2, 4, ... instead."""
    xp = namespace(x)
    y = xp.moveaxis(x, axis, 0).copy()
    span = 1
    while span < len(y):
        y[span:] = getattr(xp, which)(y[span:], y[:-span].copy())
        span *= 2
    return xp.moveaxis(y, 0, axis)
