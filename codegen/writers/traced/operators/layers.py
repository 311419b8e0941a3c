"""Steps of layers between operators: masks, bags, max-norm."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.capture.ref import Ref
from burnish.codegen.writers.traced.emitter import Emitter
from burnish.codegen.writers.traced.operators.elementwise import same
from burnish.codegen.writers.traced.operators.reduce import norm
from burnish.codegen.writers.traced.table import writes
from burnish.nn.embedding import Embedding, EmbeddingBag


@writes("step is_above")
def is_above(emit: Emitter, x: Any, limit: float) -> Any:
    return emit("Greater", *same(emit, x, limit))


@writes("step is_equal")
def is_equal(emit: Emitter, x: Any, value: float) -> Any:
    return emit("Equal", *same(emit, x, value))


@writes("step _joined")
def joined(
    emit: Emitter, attn: Any, padding: Any, *, sizes: Any, dtype: Any, device: Any
) -> Any:
    """Attention's masks as one: who takes part, or numbers to add."""
    n, heads, queries, length = sizes
    masks = []
    if attn is not None:
        if tuple(attn.shape) == (n * heads, queries, length) and len(attn.shape) == 3:
            masks.append((attn.dtype, emit.reshape(attn, (-1, *sizes[1:]))))
        else:
            masks.append((attn.dtype, emit.value(attn)))
    if padding is not None:
        masks.append((padding.dtype, emit.reshape(padding, (-1, 1, 1, length))))
    if all(kind.kind == "b" for kind, _ in masks):
        shown = [emit("Not", mask) for _, mask in masks]
        return shown[0] if len(shown) == 1 else emit("And", *shown)
    low, zero = np.asarray(-np.inf, dtype), np.asarray(0, dtype)
    added = [
        emit("Where", mask, low, zero) if kind.kind == "b" else emit.cast(mask, dtype)
        for kind, mask in masks
    ]
    return added[0] if len(added) == 1 else emit("Add", *added)


@writes("step _kept")
def kept(emit: Emitter, mask: Any, *, device: Any) -> Any:
    """(N, S), True where the context takes no part -> (N, 1, 1, 1, S), where it does"""
    if mask.dtype.kind != "b":
        raise emit.cannot("a mask of numbers")
    return emit("Unsqueeze", emit("Not", mask), emit.ints([1, 2, 3]))


@writes("step _bags")
def bags(
    emit: Emitter,
    ids: Any,
    offsets: Any,
    *,
    include_last_offset: bool,
    padding_idx: int | None,
) -> Any:
    """Bags of one length, a row each."""
    if offsets is not None:
        raise emit.cannot("bags of different lengths")
    shape = emit("Shape", ids)
    count = emit("ReduceProd", shape, keepdims=0)
    line = emit.counted(count)
    if padding_idx is None:
        live = emit("Expand", np.asarray(True), shape)
    else:
        live = emit("Not", emit("Equal", ids, np.asarray(padding_idx, ids.dtype)))
    total = emit("ReduceSum", emit.cast(live, np.int64), emit.ints([1]), keepdims=1)
    return emit("Reshape", line, shape), live, total


@writes("step _inverse")
def inverse(emit: Emitter, count: Any, *, dtype: Any) -> Any:
    least = emit("Max", emit.cast(count, dtype), np.asarray(1, dtype))
    return emit("Reciprocal", least)


@writes("step _scales")
def scales(emit: Emitter, rows: Any, *, max_norm: float, norm_type: float) -> Any:
    kind = rows.dtype
    size = norm(emit, rows, norm_type, -1, True)
    room = emit("Add", size, np.asarray(1e-7, kind))
    scale = emit("Div", np.asarray(max_norm, kind), room)
    long = emit("Greater", size, np.asarray(max_norm, kind))
    return emit("Where", long, scale, np.asarray(1, kind))


@writes("step _shortened")
def shortened(
    emit: Emitter, weight: Any, ids: Any, *, max_norm: float, norm_type: float
) -> Any:
    """Limit the norm of every row of the table, also of unused rows."""
    by = scales(emit, weight, max_norm=max_norm, norm_type=norm_type)
    return emit("Mul", weight, by)


@writes("step _assign")
def assign(emit: Emitter, stored: Any, value: Any, *, dtype: Any) -> Any:
    """A table keeps its shortened rows; nothing else stays from run to run."""
    owner = emit.current.path[-1][1] if emit.current.path else None
    if not isinstance(owner, Embedding | EmbeddingBag) or not isinstance(stored, Ref):
        raise emit.cannot("a parameter or buffer that gets values in every run")
    emit.values[stored.place] = emit.value(value)
