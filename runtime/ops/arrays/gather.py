"""Gather and scatter by index: slices, and elements of a flattened array."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burnish.backend import Array, namespace
from burnish.errors import InputError
from burnish.operator import composed, operator
from burnish.ops._places import along_axis
from burnish.ops._shapes import (
    axes_of,
    cast,
    ranked,
    values,
)
from burnish.ops.arrays._scalars import along
from burnish.ops.arrays.index import put_rows, set_item, take_slices
from burnish.ops.arrays.shape import moveaxis, reshape
from burnish.ops.elementwise.compare import where
from burnish.steps import step


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
    places = places_along(indices, shape=x.shape, axis=axis, broadcasts=True)
    return take_slices(reshape(x, shape=(-1,)), places)


@composed
def gather_elements(x: Any, indices: Any, axis: int = 0) -> Array:
    """One element of x for every index: y[i, j] = x[indices[i, j], j] for axis 0."""
    places = places_along(indices, shape=x.shape, axis=axis)
    return take_slices(reshape(x, shape=(-1,)), places)


@composed
def scatter_elements(
    x: Any, indices: Any, updates: Any, *, axis: int = 0, reduction: str = "none"
) -> Array:
    """A copy of x with y[indices[i, j], j] = updates[i, j] for axis 0, or combined.

    reduction: as in `scatter_rows`.
    """
    places = places_along(indices, shape=x.shape, axis=axis).reshape(-1)
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
    places = places_of(indices, shape=x.shape, batch_dims=batch_dims)
    rest = x.shape[depth:]
    rows = reshape(x, shape=(math.prod(x.shape[:depth]), *rest))
    return reshape(take_slices(rows, places), shape=(*indices.shape[:-1], *rest))


@composed
def scatter_nd(x: Any, indices: Any, updates: Any, *, reduction: str = "none") -> Array:
    """A copy of x with elements or slices set, or combined, at positions.

    indices: positions in the last axis; reduction: as in `scatter_rows`.
    """
    depth = _depth("scatter_nd", x, indices)
    places = places_of(indices, shape=x.shape)
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
    if not broadcasts and (found := along_axis(indices, shape, axis)) is not None:
        return found
    low = _check_range(indices, shape, axis)
    sizes = shape if broadcasts else indices.shape
    places = indices.astype(np.int64, copy=False)  # fewer bits may hold no place
    if low is None or low < 0:
        places = xp.where(places < 0, places + shape[axis], places)
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    start = 0  # of the line along the axis
    for i, n in enumerate(sizes):
        if i != axis and (broadcasts or n != 1):  # so that each axis has its place
            along = xp.arange(n) * strides[i]
            start = start + along.reshape(-1, *(1,) * (len(shape) - 1 - i))
    places = places * strides[axis]
    if broadcasts:
        return places + start
    places += start
    return places


@step
def places_along(
    indices: Any, *, shape: tuple[int, ...], axis: int, broadcasts: bool = False
) -> Any:
    return flat_places(shape, indices, axis, broadcasts)


def _check_range(indices: Any, shape: tuple[int, ...], axis: int) -> Any:
    """The least index; raises InputError unless all are integers along an axis.

    Beyond the axis they would point at other rows. A GPU's may be any: None for them.
    """
    if indices.dtype.kind not in "iu":
        raise InputError(f"indices: expected integers, got {indices.dtype}")
    if namespace(indices) is not np or not indices.size:
        return None
    n, low, high = shape[axis], indices.min(), indices.max()
    if low < -n or high >= n:
        raise InputError(
            f"indices: expected {-n} to {n - 1} for axis {axis} of x {shape}, "
            f"got {low} to {high}"
        )
    return low


@step
def places_of(indices: Any, *, shape: tuple[int, ...], batch_dims: int = 0) -> Any:
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
            _check_range(step, shape, i)
            step = step.astype(np.int64, copy=False)
            step = xp.where(step < 0, step + shape[i], step)
        places = places * shape[i] + step
    return xp.broadcast_to(places, indices.shape[:-1]).reshape(-1)


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
