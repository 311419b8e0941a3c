"""Indexing, scattering, sorting and padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.codegen.ops.rule.expressions import (
    UnfitError,
    call,
    ints,
    known,
    layer,
    method,
    number,
    operand,
    owned,
    paired,
    tensor,
)
from burnish.codegen.ops.rule.registry import NodeContext, Result, onnx_op
from burnish.codegen.ops.rule.simple import called
from burnish.codegen.ops.rule.traits import (
    OWN_SHAPE,
    REPARAMETRIZATION,
    RESIZE,
    SAME_SHAPE,
    SELECTION,
)
from burnish.codegen.ops.rule.words import (
    WHOLE,
    at,
    is_scalar,
    made,
    named,
    numbers,
    size,
    unpacked,
)
from burnish.codegen.ops.shapes import indexing
from burnish.codegen.program import (
    Attribute,
    BinOp,
    Dim,
    Expression,
    Literal,
    Slice,
    Subscript,
    Weight,
)

_FAR = 2**31 - 1
"""From here on a bound means "to the end"."""


@onnx_op(
    "Gather",
    traits=OWN_SHAPE | RESIZE | SELECTION | REPARAMETRIZATION,
    shapes=indexing.gather,
)
def gather(data: Expression, indices: Expression, *, axis: int = 0) -> Result:
    if isinstance(data, Weight) and owned(data) and len(data.shape) == 2 and axis == 0:
        row = known(indices)
        if row is not None and row.ndim == 0:
            table = layer("Embedding", data.shape, {}, {"weight": data})
            return Subscript(Attribute(table, "weight"), (Literal(int(row)),))
        return layer("Embedding", data.shape, {}, {"weight": data}, tensor(indices))
    if is_scalar(indices):
        return at(data, axis, operand(number(indices)))
    places = known(indices)
    if places is not None and places.ndim == 1 and places.size:
        run = _as_slice(places)
        if run is not None:
            return at(data, axis, run)
    return at(data, axis, tensor(indices))


def _as_slice(places: np.ndarray) -> Expression | None:
    """[1, 2, 3] as 1:4; None when it is no run from the front."""
    first, count = int(places[0]), len(places)
    if first < 0 or (places != np.arange(first, first + count)).any():
        return None
    return Slice(Literal(first) if first else None, Literal(first + count))


@onnx_op("GatherElements", traits=OWN_SHAPE | SELECTION, shapes=indexing.index_shaped)
def gather_elements(data: Expression, indices: Expression, *, axis: int = 0) -> Result:
    return call("gather_elements", data, tensor(indices), axis=axis)


@onnx_op("GatherND", traits=OWN_SHAPE | RESIZE | SELECTION, shapes=indexing.gather_nd)
def gather_nd(data: Expression, indices: Expression, *, batch_dims: int = 0) -> Result:
    return call("gather_nd", data, tensor(indices), batch_dims=batch_dims)


@onnx_op("Index", domain="burnish", traits=OWN_SHAPE, shapes=indexing.index)
def index(data: Expression, *places: Expression) -> Result:
    return Subscript(tensor(data), tuple(map(tensor, places)))


@onnx_op("Slice")
def slice_of_constants(
    data: Expression,
    *,
    axes: list[int] | None = None,
    ends: list[int],
    starts: list[int],
) -> Result:
    chosen = list(range(len(starts))) if axes is None else axes
    return _sliced(data, starts, ends, chosen, [1] * len(starts))


@onnx_op(
    "Slice", since=10, traits=OWN_SHAPE | RESIZE | SELECTION, shapes=indexing.slice_
)
def slice_(
    data: Expression,
    starts: Expression,
    ends: Expression,
    axes: Expression | None = None,
    steps: Expression | None = None,
    *,
    node: NodeContext,
) -> Result:
    along = None if axes is None else ints(axes)
    if isinstance(along, Expression) or (along and not all(map(_is_known, along))):
        return call("slice_", data, starts, ends, axes, steps)
    begin, end = numbers(node, starts, "start"), numbers(node, ends, "stop")
    if begin is None or end is None:
        return call("slice_", data, starts, ends, axes, steps)
    stride = [1] * len(begin) if steps is None else numbers(node, steps, "step")
    if along is None:
        along = list(range(len(begin)))
    return _sliced(data, begin, end, along, stride or [])


def _is_known(value: Any) -> bool:
    return not isinstance(value, Expression)


def _sliced(
    data: Expression,
    starts: list[Any],
    ends: list[Any],
    axes: list[int],
    steps: list[Any],
) -> Result:
    keys: dict[int, Expression] = {}
    for axis, start, end, step in paired(axes, starts, ends, steps):
        place = axis + data.rank if axis < 0 and data.rank is not None else axis
        if data.rank is not None and not 0 <= place < data.rank:
            raise UnfitError(f"expected axes of {data.rank}, got {axis}")
        size = data.shape[place] if data.shape is not None else None
        keys[place] = Slice(*_bounds(start, end, step, size))
    if data.rank is not None and data.rank > 2 and [*keys] == [data.rank - 1]:
        key: tuple[Expression, ...] = (Literal(...), keys[data.rank - 1])
    elif all(axis >= 0 for axis in keys):
        key = tuple(keys.get(i, WHOLE) for i in range(max(keys, default=-1) + 1))
    else:
        first = min(keys)
        key = (Literal(...), *(keys.get(i, WHOLE) for i in range(first, 0)))
    if all(k == WHOLE for k in key):
        return operand(data)
    return Subscript(tensor(data), key)


def _bounds(
    start: Any, end: Any, step: Any, size: Dim
) -> tuple[Expression | None, ...]:
    """Python's bounds; those that say nothing are left out."""
    backwards = _is_known(step) and step < 0
    far = size if isinstance(size, int) else _FAR
    if backwards and _is_known(start) and isinstance(size, int):
        start = max(start, -size)  # ONNX clamps it to the first place
    parts: list[Any] = [start, end, step]
    if _is_known(start) and (start == -1 or start >= _FAR if backwards else start == 0):
        parts[0] = None
    if _is_known(end) and (end <= -_FAR if backwards else end >= far):
        parts[1] = None
    if step == 1:
        parts[2] = None
    return tuple(None if p is None else operand(p) for p in parts)


@onnx_op("Scatter", traits=SAME_SHAPE)
def scatter(
    data: Expression, indices: Expression, updates: Expression, *, axis: int = 0
) -> Result:
    return scatter_elements(data, indices, updates, axis=axis)


@onnx_op("ScatterElements", traits=SAME_SHAPE)
def scatter_elements(
    data: Expression,
    indices: Expression,
    updates: Expression,
    *,
    axis: int = 0,
    reduction: str = "none",
) -> Result:
    options = {"axis": axis, "reduction": reduction}
    return call("scatter_elements", data, tensor(indices), updates, **options)


@onnx_op("ScatterND", traits=SAME_SHAPE)
def scatter_nd(
    data: Expression,
    indices: Expression,
    updates: Expression,
    *,
    reduction: str = "none",
) -> Result:
    return call("scatter_nd", data, tensor(indices), updates, reduction=reduction)


@onnx_op("TensorScatter", traits=SAME_SHAPE)
def tensor_scatter(
    past_cache: Expression,
    update: Expression,
    write_indices: Expression | None = None,
    *,
    axis: int = -2,
    mode: str = "linear",
    node: NodeContext,
) -> Result:
    """Each example's update goes behind its own write index; axis 0 is the batch."""
    rank = update.rank or 0
    along = axis % rank
    line = [-1 if i == along else 1 for i in range(rank)]
    steps = made("arange", size(update, along))
    places: Expression = method(steps, "reshape", *line)
    if write_indices is not None:
        starts = method(write_indices, "reshape", -1, *[1] * (rank - 1))
        places = BinOp("+", starts, places)
    if mode == "circular":
        places = BinOp("%", places, size(past_cache, along))
    spread = call("expand", places, shape=Attribute(operand(update), "shape"))
    return call("scatter_elements", past_cache, spread, update, axis=axis)


@onnx_op("TopK", since=10, traits=OWN_SHAPE | RESIZE)
def top_k(
    X: Expression, K: Expression, *, axis: int = -1, largest: int = 1, sorted_: int = 1
) -> Result:
    return call("top_k", X, number(K), axis=axis, largest=largest)


called("NonZero", "non_zero", "X", traits=OWN_SHAPE)


@onnx_op("Compress", traits=OWN_SHAPE | RESIZE | SELECTION)
def compress(
    input_: Expression, condition: Expression, *, axis: int | None = None
) -> Result:
    return call("compress", tensor(condition), input_, axis=axis)


@onnx_op("Unique", traits=OWN_SHAPE)
def unique(
    X: Expression, *, axis: int | None = None, sorted_: int = 1, node: NodeContext
) -> Result:
    parts = call("unique_of", X, axis=axis, ordered=sorted_)
    names = ("values", "first", "inverse", "counts")
    return tuple(unpacked(node, parts, *names)[: len(node.outputs)])


@onnx_op("ReverseSequence", traits=SAME_SHAPE | SELECTION)
def reverse_sequence(
    input_: Expression,
    sequence_lens: Expression,
    *,
    batch_axis: int = 1,
    time_axis: int = 0,
    node: NodeContext,
) -> Result:
    """Step t of an example of length n comes from n - 1 - t, behind n from t."""
    if input_.rank is None:
        raise UnfitError("expected an input with a known number of axes")
    rank = input_.rank
    time_line = [-1 if i == time_axis else 1 for i in range(rank)]
    batch_line = [-1 if i == batch_axis else 1 for i in range(rank)]
    line = made("arange", size(input_, time_axis))
    steps = named(node, method(line, "reshape", *time_line), "steps", "int64")
    column = method(sequence_lens, "reshape", *batch_line)
    lengths = named(node, column, "lengths", "int64")
    reversed_steps = BinOp("-", BinOp("-", lengths, Literal(1)), steps)
    places = call("where", BinOp("<", steps, lengths), reversed_steps, steps)
    return call("take_along_axis", input_, places, axis=time_axis)
