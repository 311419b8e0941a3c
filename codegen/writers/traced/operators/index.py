"""Indexing, gathering and scattering."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.capture.ref import Ref
from burnish.codegen.writers.traced.emitter import Emitter
from burnish.codegen.writers.traced.operators.shape import slices
from burnish.codegen.writers.traced.sizes import Size, Varying
from burnish.codegen.writers.traced.table import writes


@writes("take_slices")
def take_slices(emit: Emitter, x: Any, indices: Any, *, axis: int = 0) -> Any:
    return emit("Gather", x, whole(emit, indices), axis=axis)


def whole(emit: Emitter, indices: Any) -> Any:
    """Indices of a dtype that ONNX takes."""
    kind = getattr(indices, "dtype", np.dtype(np.int64))
    if not isinstance(indices, Ref | Varying):
        return emit.value(np.asarray(indices, np.int64))
    return indices if kind in (np.int32, np.int64) else emit.cast(indices, np.int64)


@writes("embedding")
def embedding(emit: Emitter, ids: Any, weight: Any, *, padding_idx: Any) -> Any:
    return emit("Gather", weight, whole(emit, ids), axis=0)


@writes("gather_elements")
def gather_elements(emit: Emitter, x: Any, indices: Any, axis: int = 0) -> Any:
    return emit("GatherElements", x, whole(emit, indices), axis=axis)


@writes("take_along_axis")
def take_along_axis(emit: Emitter, x: Any, indices: Any, axis: int = -1) -> Any:
    """GatherElements of operands that broadcast, but along the axis."""
    axis = axis % len(x.shape)
    places = whole(emit, indices)
    like = list(emit.result.shape)
    others = [i for i in range(len(like)) if i != axis]
    if any(indices.shape[i] != like[i] for i in others):
        places = emit("Expand", places, emit.ints(like))
    like[axis] = 1
    if any(x.shape[i] != like[i] for i in others):
        x = emit("Expand", x, emit.ints(like))
    return emit("GatherElements", x, places, axis=axis)


@writes("gather_nd")
def gather_nd(emit: Emitter, x: Any, indices: Any, *, batch_dims: int = 0) -> Any:
    return emit("GatherND", x, emit.cast(indices, np.int64), batch_dims=batch_dims)


@writes("scatter_elements")
def scatter_elements(
    emit: Emitter,
    x: Any,
    indices: Any,
    updates: Any,
    *,
    axis: int = 0,
    reduction: str = "none",
) -> Any:
    places, kept = whole(emit, indices), _unless_none(reduction)
    new = emit.cast(updates, x.dtype)
    return emit("ScatterElements", x, places, new, axis=axis, reduction=kept)


@writes("scatter_nd")
def scatter_nd(
    emit: Emitter, x: Any, indices: Any, updates: Any, *, reduction: str = "none"
) -> Any:
    places, kept = emit.cast(indices, np.int64), _unless_none(reduction)
    return emit("ScatterND", x, places, emit.cast(updates, x.dtype), reduction=kept)


@writes("put_rows")
def put_rows(emit: Emitter, x: Any, indices: Any, *, rows: int) -> Any:
    empty = emit("Expand", np.asarray(0, x.dtype), emit.ints(emit.result.shape))
    places = emit("Unsqueeze", whole(emit, indices), emit.ints([-1]))
    return emit("ScatterND", empty, places, x, reduction="add")


@writes("scatter_rows")
def scatter_rows(
    emit: Emitter, x: Any, indices: Any, updates: Any, *, reduction: str
) -> Any:
    places = emit("Unsqueeze", emit.cast(indices, np.int64), emit.ints([-1]))
    new, kept = emit.cast(updates, x.dtype), _unless_none(reduction)
    return emit("ScatterND", x, places, new, reduction=kept)


def _unless_none(reduction: str) -> str | None:
    return None if reduction == "none" else reduction


@writes("compress")
def compress(emit: Emitter, condition: Any, x: Any, axis: int | None = None) -> Any:
    return emit("Compress", x, emit.cast(condition, np.bool_), axis=axis)


@writes("one_hot_of")
def one_hot_of(
    emit: Emitter, indices: Any, depth: Any, values: Any, *, axis: int
) -> Any:
    count = depth if isinstance(depth, Ref | Size) else np.asarray(depth, np.int64)
    return emit("OneHot", indices, count, values, axis=axis)


@writes("getitem")
def getitem(emit: Emitter, x: Any, *, index: Any) -> Any:
    return _picked(emit, x, index, len(x.shape))


def _picked(emit: Emitter, x: Any, index: Any, rank: int) -> Any:
    """x[index]: slices, then arrays and masks, then numbers, then new axes."""
    items = _spelled(index, rank)
    cuts, numbers, arrays, axis = {}, {}, {}, 0
    for item in items:
        if item is None:
            continue
        if isinstance(item, slice):
            if item != slice(None):
                cuts[axis] = item
        elif isinstance(item, int | np.integer) and not isinstance(item, bool):
            numbers[axis] = item
        else:
            arrays[axis] = item
        axis += _depth(item)
    made = slices(emit, x, cuts) if cuts else emit.value(x)
    if arrays:
        if numbers or (any(i is None for i in items) and len(arrays) > 1):
            arrays.update({a: np.asarray(n) for a, n in numbers.items()})
            numbers = {}
        made = _advanced(emit, made, dict(sorted(arrays.items())))
    for place in sorted(numbers, reverse=True):
        number = numbers[place]
        at = emit.value(number) if isinstance(number, Size) else np.int64(number)
        made = emit("Gather", made, at, axis=place)
    added = _added(items)
    return emit("Unsqueeze", made, emit.ints(added)) if added else made


def _spelled(index: Any, rank: int) -> list[Any]:
    """An index as a list, without `...`, with the slices that it leaves out."""
    items = list(index) if isinstance(index, tuple) else [index]
    items = [np.asarray(i) if isinstance(i, list) else i for i in items]
    used = sum(_depth(i) for i in items if i is not None and i is not ...)
    rest = [slice(None)] * (rank - used)
    places = [k for k, item in enumerate(items) if item is ...]
    at = places[0] if places else len(items)
    return items[:at] + rest + items[at + bool(places) :]


def is_mask(item: Any) -> bool:
    """Whether an item of an index is an array of truth values."""
    return getattr(getattr(item, "dtype", None), "kind", "") == "b"


def _depth(item: Any) -> int:
    """The number of axes that an item of an index consumes."""
    if is_mask(item):
        return len(item.shape)
    return 1


def _added(items: list[Any]) -> list[int]:
    places, axis = [], 0
    for item in items:
        if item is None:
            places.append(axis)
            axis += 1
        elif isinstance(item, slice):
            axis += 1
        elif not isinstance(item, int | np.integer):
            axis += 1 if is_mask(item) else len(item.shape)
    return places


def _advanced(emit: Emitter, x: Any, arrays: dict[int, Any]) -> Any:
    if len(arrays) == 1:
        ((axis, item),) = arrays.items()
        if not is_mask(item):
            return emit("Gather", x, whole(emit, item), axis=axis)
        if len(item.shape) == 1:
            return emit("Compress", x, item, axis=axis)
        if axis == 0:
            places = emit("Transpose", emit("NonZero", item), perm=[1, 0])
            return emit("GatherND", x, places)
    axes = list(arrays)
    if axes != list(range(len(axes))) or any(map(is_mask, arrays.values())):
        raise emit.cannot("an index of several arrays that are not the first ones")
    parts = [whole(emit, item) for item in arrays.values()]
    shapes = [emit("Shape", part) for part in parts]
    total = emit.value(parts[0])
    for part in parts[1:]:  # zeros of the shape that all broadcast to
        total = emit("Add", total, part)
    shape = emit("Shape", total) if shapes else None
    grown = [
        emit("Unsqueeze", emit("Expand", p, shape), emit.ints([-1])) for p in parts
    ]
    return emit("GatherND", x, emit("Concat", *grown, axis=-1))


@writes("set_item")
def set_item(emit: Emitter, x: Any, values: Any, *, index: Any) -> Any:
    """The places of all elements, indexed as x is, say where the values go."""
    shape = emit("Shape", x)
    count = emit("ReduceProd", shape, keepdims=0)
    places = emit.counted(count)
    chosen = _picked(emit, emit("Reshape", places, shape), index, len(x.shape))
    new = emit("Expand", emit.cast(values, x.dtype), emit("Shape", chosen))
    flat = emit.ints([-1])
    parts = [emit("Reshape", part, flat) for part in (x, chosen, new)]
    return emit("Reshape", emit("ScatterElements", *parts, axis=0), shape)


@writes("put_at")
def put_at(emit: Emitter, x: Any, *, index: Any, shape: Any) -> Any:
    """Zeros of a shape to which x is added at the places that the index picks."""
    sizes = emit.ints(emit.result.shape)
    count = emit("ReduceProd", sizes, keepdims=0)
    places = emit("Reshape", emit.counted(count), sizes)
    chosen = _picked(emit, places, index, len(shape))
    flat = emit.ints([-1])
    empty = emit(
        "Expand", np.asarray(0, x.dtype), emit("Reshape", count, emit.ints([1]))
    )
    parts = [emit("Reshape", part, flat) for part in (chosen, x)]
    made = emit("ScatterElements", empty, *parts, axis=0, reduction="add")
    return emit("Reshape", made, sizes)


@writes("last_diagonal")
def last_diagonal(emit: Emitter, x: Any, *, offset: int) -> Any:
    count = emit.result.shape[-1]
    line = emit.counted(count)
    rows = emit("Add", line, np.int64(max(-offset, 0)))
    columns = emit("Add", line, np.int64(max(offset, 0)))
    width = emit("Squeeze", emit.axis(x, len(x.shape) - 1), emit.ints([0]))
    places = emit("Add", emit("Mul", rows, width), columns)
    flat = emit("Reshape", x, emit.ints([*(0 for _ in x.shape[:-2]), -1]))
    return emit("Gather", flat, places, axis=-1)
