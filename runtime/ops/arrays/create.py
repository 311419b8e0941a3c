"""Arrays made from sizes and masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend import Array, namespace
from burnish.operator import composed, operator
from burnish.ops._shapes import axes_of, plain
from burnish.ops._tables import beside
from burnish.ops.arrays.reduce import reduce_sum
from burnish.ops.arrays.shape import stack


@operator
def constant_of_shape(shape, *, value: Any = None) -> Array:
    """An array of `shape` (a vector of integers) full of one value of its dtype.

    None is 0 in float32.
    """
    xp = namespace(shape)
    value = np.asarray(np.float32(0) if value is None else value).reshape(())
    return xp.full(tuple(int(n) for n in shape), value.item(), value.dtype)


@operator
def range_(start, limit, delta) -> Array:
    """start, start + delta, ... up to before limit; the three are single numbers."""
    xp = namespace(start, limit, delta)
    dtype = np.result_type(*(getattr(a, "dtype", a) for a in (start, limit, delta)))
    numbers = [getattr(a, "item", lambda a=a: a)() for a in (start, limit, delta)]
    return xp.arange(*numbers, dtype=dtype)


@operator
def eye_like(x, *, dtype: Any = None, k: int = 0) -> Array:
    """Ones on the k-th diagonal of a matrix of x's shape, zeros elsewhere."""
    return namespace(x).eye(*x.shape, k=k, dtype=dtype or x.dtype)


@operator
def trilu(x, *, k: int = 0, upper: bool = True) -> Array:
    """x on and above its k-th diagonal (on and below unless `upper`), else 0."""
    xp = namespace(x)
    return xp.triu(x, k) if upper else xp.tril(x, k)


@trilu.vjp
def _(g, y, x, *, k, upper):
    return trilu(g, k=k, upper=upper)


@composed
def triu(x: Any, k: int = 0) -> Array:
    """x on and above its k-th diagonal, 0 below."""
    return trilu(x, k=k)


@composed
def tril(x: Any, k: int = 0) -> Array:
    """x on and below its k-th diagonal, 0 above."""
    return trilu(x, k=k, upper=False)


@composed
def one_hot(
    x: Any,
    num_classes: int = -1,
    *,
    axis: int = -1,
    on: float = 1,
    off: float = 0,
    dtype: Any = "int64",
) -> Array:
    """Integers as vectors of length num_classes along a new axis, `on` in one place.

    num_classes: -1 is one more than the greatest of x.
    """
    count = _greatest(plain(x)) + 1 if num_classes == -1 else num_classes
    return one_hot_of(x, count, np.asarray((off, on), dtype), axis=axis)


@operator
def one_hot_of(indices, depth, values, *, axis: int = -1) -> Array:
    """Integers as vectors of length `depth` along a new axis, on in one place.

    values: (off, on), their dtype is the result's. Negative integers count from the
    end; those out of range are off everywhere.
    """
    xp = namespace(indices, depth, values)
    depth = int(depth.reshape(()) if hasattr(depth, "reshape") else depth)
    axis = axes_of(axis, indices.ndim + 1)[0]
    indices = xp.where(indices < 0, indices + depth, indices)
    places = xp.arange(depth).reshape(-1, *(1,) * (indices.ndim - axis))
    return xp.where(xp.expand_dims(indices, axis) == places, values[1], values[0])


@one_hot_of.vjp("values")
def _(g, y, indices, depth, values, *, axis):
    ends = beside(g, np.array([0, 1], values.dtype))
    on = g * one_hot_of(indices, depth, ends, axis=axis)
    return stack((reduce_sum(g - on), reduce_sum(on)))


def _greatest(x: Array) -> int:
    return int(x.max()) if x.size else -1
