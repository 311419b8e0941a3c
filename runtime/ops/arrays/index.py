"""NumPy's indexing, slices along an axis by number, and windows.

What integers pick may be picked twice, so their gradients are added up: `put_at` for
NumPy's indexing, `put_rows` for whole rows by number.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from burnish.backend import Array, as_indices, as_places, namespace
from burnish.errors import InputError, PlaceError
from burnish.operator import composed, operator
from burnish.ops._shapes import (
    axes_of,
    plain,
    total,
    unbroadcast,
)
from burnish.ops._tables import beside
from burnish.ops.arrays.shape import moveaxis, reshape, transpose


@operator
def getitem(x, *, index: Any) -> Array:
    """x[index]: integers, slices, None, Ellipsis, integer and boolean arrays."""
    return x[_placed(x, index)]


@getitem.vjp
def _(g, y, x, *, index):
    return put_at(g, index=index, shape=x.shape)


@operator
def put_at(x, *, index: Any, shape: tuple[int, ...]) -> Array:
    """Zeros of `shape` with x added at [index]."""
    xp, index = namespace(x), _placed(x, index)
    items = index if isinstance(index, tuple) else (index,)
    if not any(_repeats(item) for item in items):
        y = xp.zeros(shape, x.dtype)
        y[index] = x
        return y
    indexed = _axes_indexed(items, len(shape))
    lead, rest = shape[:indexed], shape[indexed:]
    items = tuple(i for i in items if i is not Ellipsis) if rest else items
    rows = math.prod(lead)
    places = xp.arange(rows).reshape(lead)[items]
    flat = x.reshape(places.size, *rest)
    return put_rows(flat, places.reshape(-1), rows=rows).reshape(shape)


@put_at.vjp
def _(g, y, x, *, index, shape):
    return getitem(g, index=index)


def _repeats(item: Any) -> bool:
    """Whether an index may pick an element twice: integers in an array."""
    if isinstance(item, list):
        item = np.asarray(item)
    return getattr(item, "ndim", 0) > 0 and not _is_mask(item)


def _is_mask(item: Any) -> bool:
    return getattr(item, "dtype", None) == np.dtype(bool)


def _axes_indexed(items: tuple[Any, ...], ndim: int) -> int:
    """How many leading axes an index touches; it leaves those behind as they are."""
    if any(item is Ellipsis for item in items[:-1]):
        return ndim
    used = sum(
        item.ndim if _is_mask(item) else 1
        for item in items
        if item is not None and item is not Ellipsis
    )
    return min(used, ndim)


@operator
def set_item(x, values, *, index: Any) -> Array:
    """A copy of x with `values` at [index]."""
    y = namespace(x).array(x)  # a gradient may be a scalar, which nothing writes into
    y[_placed(x, index)] = values
    return y


@set_item.vjp("x")
def _(g, y, x, values, *, index):
    return set_item(g, 0, index=index)


@set_item.vjp("values")
def _(g, y, x, values, *, index):
    return unbroadcast(getitem(g, index=index), values)


def _placed(x: Any, index: Any) -> Any:
    """An index whose integers are where x is."""
    if isinstance(index, tuple):
        return tuple(_placed(x, item) for item in index)
    is_table = isinstance(index, np.ndarray) and index.ndim and index.dtype.kind in "iu"
    return beside(x, index) if is_table else index


@operator
def take_slices(x, indices, *, axis: int = 0) -> Array:
    """x's slices along an axis, by number; the shape of `indices` takes its place."""
    try:
        return namespace(x, indices).take(x, as_indices(indices), axis)
    except (IndexError, TypeError) as error:
        kind = PlaceError if isinstance(error, IndexError) else InputError
        raise kind(f"take: {error} of x {x.shape}") from None


@take_slices.vjp("x")
def _(g, y, x, indices, *, axis):
    indices = namespace(plain(x)).asarray(indices)
    if each := _repeats_each(indices, x.shape[axis]):
        parts = (slice(i, None, each) for i in range(each))
        lead = (slice(None),) * axes_of(axis, len(x.shape))[0]
        picked = (getitem(g, index=(*lead, part)) for part in parts)
        return functools.reduce(lambda a, b: a + b, picked)
    return _added_slices(g, indices, x, axis)


def _added_slices(g: Any, indices: Any, x: Any, axis: int) -> Any:
    """Zeros like x with g's slices added at `indices`, where they were taken."""
    axis, picked = axes_of(axis, len(x.shape))[0], indices.ndim
    if axis:
        ahead = range(axis + picked, len(g.shape))
        g = transpose(g, axes=(*range(axis, axis + picked), *range(axis), *ahead))
    g = reshape(g, shape=(indices.size, *g.shape[picked:]))
    part = put_rows(g, indices.reshape(-1), rows=x.shape[axis])
    if axis:
        behind = range(axis + 1, len(x.shape))
        part = transpose(part, axes=(*range(1, axis + 1), 0, *behind))
    return part


def _repeats_each(indices: Any, n: int) -> int:
    """The repeats of each of n numbers in indices such as 0, 0, 1, 1; 0 for others."""
    if not isinstance(indices, np.ndarray) or indices.ndim != 1 or not n:
        return 0
    each = indices.size // n
    if not 1 <= each <= 8 or each * n != indices.size:
        return 0
    return each if (indices == np.arange(n).repeat(each)).all() else 0


@operator
def put_rows(x, indices, *, rows: int) -> Array:
    """`rows` rows of zeros with row i of x added to row indices[i]."""
    shape = rows, *x.shape[1:]
    if not x.size:
        return np.zeros(shape, x.dtype)
    if indices.min() < 0:
        indices = np.where(indices < 0, indices + rows, indices)
    width = x.size // len(x)
    if width == 1 and x.dtype.kind == "f":
        found = np.bincount(as_indices(indices), x.reshape(-1), rows)
        return found.astype(x.dtype, copy=False).reshape(shape)
    small = indices.astype(np.uint16) if rows <= 1 << 16 else indices  # sorts faster
    order = np.argsort(small, kind="stable")
    indices = indices[order]
    starts = np.flatnonzero(np.append(True, indices[1:] != indices[:-1]))
    counts = np.diff(np.append(starts, len(order)))
    common = np.argsort(-counts, kind="stable")  # the indices that occur most first
    starts, counts = starts[common], counts[common]
    found = x.take(order[starts], axis=0)
    for turn in range(1, int(counts[0])):
        left = int(np.searchsorted(-counts, -turn))
        if left < _FEW:  # too few to vectorize
            for i in range(left):
                rest = order[starts[i] + turn : starts[i] + counts[i]]
                found[i] += total(x.take(rest, axis=0), (0,))[0]
            break
        found[:left] += x.take(order[starts[:left] + turn], axis=0)
    y = np.zeros(shape, x.dtype)
    y[indices[starts]] = found
    return y


_FEW = 16


@put_rows.on("cupy")
def _(x, indices, *, rows):
    xp = namespace(x)
    y = xp.zeros((rows, *x.shape[1:]), x.dtype)
    xp.add.at(y, indices, x)
    return y


@put_rows.vjp("x")
def _(g, y, x, indices, *, rows):
    return take_slices(g, indices)


@operator
def unfold(x, /, axis: int, size: int, step: int) -> Array:
    """Windows of `size` along an axis, one every `step`, as a new last axis; no copy.

    (..., L, ...) -> (..., (L - size) // step + 1, ..., size)
    """
    axis = axes_of(axis, x.ndim)[0]
    length, stride = x.shape[axis], x.strides[axis]
    if not 0 < size <= length or step < 1:
        raise InputError(
            f"unfold: expected a size of 1 to {length} and a positive step for axis "
            f"{axis}, got {size} and {step}"
        )
    shape, strides = [*x.shape, size], [*x.strides, stride]
    shape[axis], strides[axis] = (length - size) // step + 1, stride * step
    return namespace(x).lib.stride_tricks.as_strided(x, shape, strides)


@unfold.vjp
def _(g, y, x, *, axis, size, step):
    axis = axes_of(axis, len(x.shape))[0]
    starts = np.arange(0, x.shape[axis] - size + 1, step)
    places = beside(x, starts[:, None] + np.arange(size))
    return _added_slices(moveaxis(g, -1, axis + 1), places, x, axis)


@composed
def slice_(
    x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None
) -> Array:
    """x[start:end:step] along each of some axes; numbers beyond an end stop there.

    As ONNX's Slice: a negative step starts no further in front than at the first place,
    where Python's slice would be empty.
    """
    begin, stop = _integers(starts), _integers(ends)
    chosen = range(len(begin)) if axes is None else _integers(axes)
    stride = [1] * len(begin) if steps is None else _integers(steps)
    index = [slice(None)] * len(x.shape)
    for axis, first, last, step in zip(chosen, begin, stop, stride, strict=True):
        if step < 0:
            first = max(first, -x.shape[axis])
        index[axis] = slice(first, last, step)
    return getitem(x, index=tuple(index))


def _integers(numbers: Any) -> list[int]:
    return [int(v) for v in np.reshape(plain(numbers), -1)]


@operator
def non_zero(x) -> Array:
    """The positions of nonzero elements, one a column: (ndim, count) int64."""
    xp = namespace(x)
    return as_places(xp.stack(xp.nonzero(xp.atleast_1d(x))))
