"""Picking elements out of arrays, and putting them into arrays.

What integers pick may be picked twice, so their gradients are added up: `put` for
NumPy's indexing, `put_rows` for whole rows by number.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from burnish.autodiff import Variable
from burnish.backend import Array, as_indices, as_places, namespace
from burnish.errors import InputError
from burnish.operator import composed, operator
from burnish.ops._scalars import along
from burnish.ops._shapes import (
    axes_of,
    cast,
    plain,
    ranked,
    total,
    unbroadcast,
    values,
)
from burnish.ops._tables import beside
from burnish.ops.compare import where
from burnish.ops.shape import moveaxis, reshape, transpose
from burnish.steps import step

# --- NumPy's indexing ---


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


def to_index(index: Any) -> Any:
    """An index that may hold tensors as one that holds plain arrays."""
    if isinstance(index, tuple):
        return tuple(map(to_index, index))
    return values(index) if isinstance(index, Variable) else index


# --- rows by number ---


@operator
def take_slices(x, indices, *, axis: int = 0) -> Array:
    """x's slices along an axis, by number; the shape of `indices` takes its place."""
    try:
        return namespace(x, indices).take(x, as_indices(indices), axis)
    except (IndexError, TypeError) as error:
        raise InputError(f"take: {error} of x {x.shape}") from None


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
    """How often each of n numbers occurs, where they stand in order: 0, 0, 1, 1, ..."""
    if not isinstance(indices, np.ndarray) or indices.ndim != 1 or not n:
        return 0
    each = indices.size // n
    if not 1 <= each <= 8 or each * n != indices.size:
        return 0
    return each if (indices == np.arange(n).repeat(each)).all() else 0


@operator
def put_rows(x, indices, *, rows: int) -> Array:
    """`rows` rows of zeros with row i of x added to row indices[i]."""
    y = np.zeros((rows, *x.shape[1:]), x.dtype)
    if not x.size:
        return y
    indices = np.where(indices < 0, indices + rows, indices)
    width = x.size // len(x)
    if width == 1 and x.dtype.kind == "f":
        found = np.bincount(as_indices(indices), x.reshape(-1), rows)
        return found.astype(x.dtype, copy=False).reshape(y.shape)
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
        if left < _FEW:  # too few to go on side by side
            for i in range(left):
                rest = order[starts[i] + turn : starts[i] + counts[i]]
                found[i] += total(x.take(rest, axis=0), (0,))[0]
            break
        found[:left] += x.take(order[starts[:left] + turn], axis=0)
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
def scatter_rows(x, indices, updates, *, reduction: str = "none") -> Array:
    """A copy of x with row indices[i] set to updates[i], or combined with it.

    reduction: "none" (the last of equal indices wins), "add", "mul", "max" or "min".
    """
    if reduction not in ("none", "add", "mul", "max", "min"):
        raise InputError(
            f"scatter: expected reduction 'none', 'add', 'mul', 'max' or 'min', "
            f"got {reduction!r}"
        )
    xp = namespace(x)
    indices = xp.asarray(indices)
    _check_range(indices, x.shape, 0)
    y = x.copy()
    if reduction == "none":
        y[indices] = updates
        return y
    if reduction == "add":
        updates = xp.asarray(updates, x.dtype)
        y += put_rows(updates, indices, rows=len(x)).astype(x.dtype, copy=False)
        return y
    combine = {"mul": xp.multiply, "max": xp.maximum, "min": xp.minimum}[reduction]
    indices = xp.where(indices < 0, indices + len(x), indices)
    order = xp.argsort(indices, kind="stable")
    while order.size:  # once for every time that the commonest index occurs
        first = xp.ones(order.size, bool)
        first[1:] = indices[order[1:]] != indices[order[:-1]]
        now = order[first]
        y[indices[now]] = combine(y[indices[now]], updates[now])
        order = order[~first]
    return y


@scatter_rows.vjp("x")
def _(g, y, x, indices, updates, *, reduction):
    if reduction == "add":
        return g
    if reduction == "none":
        return set_item(g, 0, index=indices)
    if reduction == "mul":
        return scatter_rows(g, indices, updates, reduction="mul")
    return where(x == y, g / _ties(y, x, indices, updates), 0)


@scatter_rows.vjp("updates")
def _(g, y, x, indices, updates, *, reduction):
    part = take_slices(g, indices)
    if reduction in ("none", "add"):
        return part
    if reduction == "mul":  # 0 where an update is 0
        whole = take_slices(y, indices)
        return where(updates == 0, 0, part * whole / where(updates == 0, 1, updates))
    ties = take_slices(_ties(y, x, indices, updates), indices)
    return where(updates == take_slices(y, indices), part / ties, 0)


def _ties(y: Any, x: Any, indices: Any, updates: Any) -> Any:
    """How many of x and the updates share the place in y that they reached."""
    won = cast(updates == take_slices(y, indices), dtype=y.dtype)
    return cast(x == y, dtype=y.dtype) + put_rows(won, indices, rows=y.shape[0])


@composed
def scatter_slices(
    x: Any, indices: Any, updates: Any, *, axis: int = 0, reduction: str = "none"
) -> Array:
    """A copy of x with its slices indices[i] along an axis set to those of updates.

    Or combined with them; reduction: as in `scatter_rows`.
    """
    indices = values(indices)
    if axis in (0, -len(x.shape)):
        return scatter_rows(x, indices, updates, reduction=reduction)
    y, updates = moveaxis(x, axis, 0), moveaxis(updates, axis, 0)
    return moveaxis(scatter_rows(y, indices, updates, reduction=reduction), 0, axis)


# --- elements by number: rows of a flattened array ---


@composed
def take(x: Any, indices: Any, axis: int | None = None) -> Array:
    """Elements by number, of all of them in order; with an axis slices along it."""
    if axis is None:
        return take_slices(reshape(x, shape=(-1,)), indices)
    sliced: Any = along(take_slices)
    return sliced(x, indices, axis=axis)


@composed
def take_along_axis(x: Any, indices: Any, axis: int = -1) -> Array:
    """One element of x for every index, along an axis; other axes broadcast."""
    places = _flat_places(indices, shape=x.shape, axis=axis, broadcasts=True)
    return take_slices(reshape(x, shape=(-1,)), places)


@composed
def gather_elements(x: Any, indices: Any, axis: int = 0) -> Array:
    """One element of x for every index: y[i, j] = x[indices[i, j], j] for axis 0."""
    places = _flat_places(indices, shape=x.shape, axis=axis)
    return take_slices(reshape(x, shape=(-1,)), places)


@composed
def scatter_elements(
    x: Any, indices: Any, updates: Any, *, axis: int = 0, reduction: str = "none"
) -> Array:
    """A copy of x with y[indices[i, j], j] = updates[i, j] for axis 0, or combined.

    reduction: as in `scatter_rows`.
    """
    places = _flat_places(indices, shape=x.shape, axis=axis).reshape(-1)
    flat, new = reshape(x, shape=(-1,)), reshape(updates, shape=(-1,))
    y = scatter_rows(flat, places, new, reduction=reduction)
    return reshape(y, shape=x.shape)


def _depth(where: str, x: Any, indices: Any, batch_dims: int = 0) -> int:
    """How many axes of x the positions in `indices` are for."""
    ranked(f"{where}: indices", indices, -1)
    depth = indices.shape[-1] + batch_dims
    if not depth <= len(x.shape):
        raise InputError(
            f"{where}: expected positions in at most {len(x.shape)} axes of x "
            f"{x.shape}, got indices {indices.shape}"
        )
    return int(depth)


@composed
def gather_nd(x: Any, indices: Any, *, batch_dims: int = 0) -> Array:
    """Elements or slices of x at the positions in the last axis of `indices`."""
    depth = _depth("gather_nd", x, indices, batch_dims)
    places = _positions(indices, shape=x.shape, batch_dims=batch_dims)
    rest = x.shape[depth:]
    rows = reshape(x, shape=(math.prod(x.shape[:depth]), *rest))
    return reshape(take_slices(rows, places), shape=(*indices.shape[:-1], *rest))


@composed
def scatter_nd(x: Any, indices: Any, updates: Any, *, reduction: str = "none") -> Array:
    """A copy of x with elements or slices set, or combined, at positions.

    indices: positions in the last axis; reduction: as in `scatter_rows`.
    """
    depth = _depth("scatter_nd", x, indices)
    places = _positions(indices, shape=x.shape)
    rest = x.shape[depth:]
    rows = reshape(x, shape=(math.prod(x.shape[:depth]), *rest))
    new = reshape(updates, shape=(places.size, *rest))
    y = scatter_rows(rows, places, new, reduction=reduction)
    return reshape(y, shape=x.shape)


def flat_places(
    shape: tuple[int, ...], indices: Any, axis: int, broadcasts: bool = False
) -> Any:
    """Where in an array of `shape`, flattened, indices along an axis point."""
    xp = namespace(indices)
    if not broadcasts and shape and indices.ndim != len(shape):
        raise InputError(
            f"indices: expected as many axes as x {shape} has, got {indices.shape}"
        )
    shape = shape or (1,)  # a scalar is a vector of one
    axis = axes_of(axis, len(shape))[0]
    _check_range(indices, shape, axis)
    sizes = shape if broadcasts else indices.shape
    places = xp.where(indices < 0, indices + shape[axis], indices)
    stride = 1
    strides = [1] * len(shape)
    for i in range(len(shape) - 1, -1, -1):
        strides[i] = stride
        stride *= shape[i]
    places = places * strides[axis]
    for i, n in enumerate(sizes):
        if i != axis:
            along = xp.arange(n) * strides[i]
            places = places + along.reshape(-1, *(1,) * (len(shape) - 1 - i))
    return places


@step
def _flat_places(
    indices: Any, *, shape: tuple[int, ...], axis: int, broadcasts: bool = False
) -> Any:
    return flat_places(shape, indices, axis, broadcasts)


def _check_range(indices: Any, shape: tuple[int, ...], axis: int) -> None:
    """Raises InputError unless indices are integers along an axis; a GPU's may be any.

    Beyond the axis they would point at other rows.
    """
    if indices.dtype.kind not in "iu":
        raise InputError(f"indices: expected integers, got {indices.dtype}")
    if namespace(indices) is not np or not indices.size:
        return
    n, low, high = shape[axis], indices.min(), indices.max()
    if low < -n or high >= n:
        raise InputError(
            f"indices: expected {-n} to {n - 1} for axis {axis} of x {shape}, "
            f"got {low} to {high}"
        )


@step
def _positions(indices: Any, *, shape: tuple[int, ...], batch_dims: int = 0) -> Any:
    """Row numbers for positions in the leading axes, all in one row."""
    xp = namespace(indices)
    depth = indices.shape[-1] + batch_dims
    places: Any = 0
    for i in range(depth):
        if i < batch_dims:
            after = indices.ndim - 2 - i
            step = xp.arange(shape[i]).reshape(-1, *(1,) * after)
        else:
            step = indices[..., i - batch_dims]
            step = xp.where(step < 0, step + shape[i], step)
        places = places * shape[i] + step
    return xp.broadcast_to(places, indices.shape[:-1]).reshape(-1)


# --- windows ---


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


# --- ONNX's other ways to pick ---


@composed
def slice_(
    x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None
) -> Array:
    """x[start:end:step] along each of some axes; numbers beyond an end stop there."""
    begin, stop = _integers(starts), _integers(ends)
    chosen = range(len(begin)) if axes is None else _integers(axes)
    stride = [1] * len(begin) if steps is None else _integers(steps)
    index = [slice(None)] * len(x.shape)
    for axis, *bounds in zip(chosen, begin, stop, stride, strict=True):
        index[axis] = slice(*bounds)
    return getitem(x, index=tuple(index))


def _integers(numbers: Any) -> list[int]:
    return [int(v) for v in np.reshape(plain(numbers), -1)]


@composed
def compress(condition: Any, x: Any, axis: int | None = None) -> Array:
    """x's slices along an axis where the condition holds; None: of x flattened."""
    places = _chosen(condition)
    if axis is None:
        return take_slices(reshape(x, shape=(-1,)), places)
    return take_slices(x, places, axis=axis)


@step
def _chosen(condition: Any) -> Any:
    return condition.nonzero()[0]


@operator
def non_zero(x) -> Array:
    """The positions of what is not zero, one a column: (ndim, count) int64."""
    xp = namespace(x)
    return as_places(xp.stack(xp.nonzero(xp.atleast_1d(x))))
