"""Reductions, running sums, sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.capture.ref import Ref
from burnish.codegen.writers.traced.emitter import Emitter, data_type
from burnish.codegen.writers.traced.operators.shape import several, slices
from burnish.codegen.writers.traced.table import same_as, writers, writes

_REDUCE = {
    "reduce_sum": "ReduceSum", "reduce_mean": "ReduceMean", "reduce_max": "ReduceMax",
    "reduce_min": "ReduceMin", "reduce_l1": "ReduceL1", "reduce_l2": "ReduceL2",
    "reduce_log_sum": "ReduceLogSum", "reduce_log_sum_exp": "ReduceLogSumExp",
    "reduce_sum_square": "ReduceSumSquare", "reduce_prod": "ReduceProd",
}  # fmt: skip


@writes(**_REDUCE)
def reduce_axes(
    emit: Emitter, x: Any, *, op: str, axes: Any = None, keepdims: bool = False
) -> Any:
    return reduced(emit, op, emit.cast(x, emit.result.dtype), axes, keepdims)


writers["non_zero"] = same_as("NonZero")


def reduced(emit: Emitter, op: str, x: Any, axes: Any, keepdims: bool) -> Any:
    """A reduction over axes; over no axes only the elementwise part applies."""
    if not emit.rank:
        axes = []
    if axes is not None and not several(axes):
        return emit(
            op, x, emit.ints([]), keepdims=int(keepdims), noop_with_empty_axes=1
        )
    chosen = None if axes is None else emit.ints(several(axes))
    return emit(op, x, chosen, keepdims=int(keepdims))


@writes("huber")
def huber(emit: Emitter, a: Any, b: Any, *, delta: float, summed: bool) -> Any:
    apart, half = emit("Sub", a, b), np.asarray(0.5, emit.result.dtype)
    if np.isinf(delta):
        losses = emit("Mul", half, emit("Mul", apart, apart))
    else:
        bound = np.asarray(delta, emit.result.dtype)
        near = emit("Clip", apart, -bound, bound)
        losses = emit("Mul", near, emit("Sub", apart, emit("Mul", half, near)))
    return reduced(emit, "ReduceSum", losses, None, False) if summed else losses


@writes("norm")
def norm(
    emit: Emitter, x: Any, p: float = 2.0, axis: Any = None, keepdims: bool = False
) -> Any:
    if p in (1, 2):
        return reduced(emit, f"ReduceL{int(p)}", x, axis, keepdims)
    kind, size = x.dtype, emit("Abs", x)
    if p == 0:
        zero = emit("Equal", size, np.asarray(0, kind))
        counted = emit.cast(emit("Not", zero), kind)
        return reduced(emit, "ReduceSum", counted, axis, keepdims)
    if abs(p) == np.inf:
        op = "ReduceMax" if p > 0 else "ReduceMin"
        return reduced(emit, op, size, axis, keepdims)
    powers = emit("Pow", size, np.asarray(p, kind))
    total = reduced(emit, "ReduceSum", powers, axis, keepdims)
    return emit("Pow", total, np.asarray(1 / p, kind))


@writes(reduce_any="ReduceMax", reduce_all="ReduceMin")
def reduce_truth(emit: Emitter, x: Any, *, op: str, axes: Any, keepdims: bool) -> Any:
    numbers = emit("Cast", emit.cast(x, np.bool_), to=6)
    return emit("Cast", reduced(emit, op, numbers, axes, keepdims), to=9)


@writes(arg_max="ArgMax", arg_min="ArgMin")
def place(
    emit: Emitter,
    x: Any,
    *,
    op: str,
    axis: int | None,
    keepdims: bool,
    select_last_index: bool,
) -> Any:
    if axis is None:
        flat = emit("Reshape", x, emit.ints([-1]))
        made = emit(op, flat, axis=0, keepdims=0)
        return emit.reshape(made, emit.result.shape) if keepdims else made
    return emit(
        op, x, axis=axis, keepdims=int(keepdims),
        select_last_index=int(select_last_index) or None,
    )  # fmt: skip


@writes("var")
def var(emit: Emitter, x: Any, *, axis: Any, keepdims: bool, correction: float) -> Any:
    mean = reduced(emit, "ReduceMean", x, axis, True)
    away = emit("Sub", x, mean)
    squares = emit("Mul", away, away)
    total = reduced(emit, "ReduceSum", squares, axis, keepdims)
    axes = range(len(x.shape)) if axis is None or not x.shape else several(axis)
    if not axes:
        return emit("Div", total, np.asarray(1 - correction, x.dtype))
    sizes = [emit.axis(x, a % len(x.shape)) for a in axes]
    count = sizes[0]
    for each in sizes[1:]:
        count = emit("Mul", count, each)
    count = emit("Squeeze", emit.cast(count, x.dtype), emit.ints([0]))
    if correction:
        count = emit("Sub", count, np.asarray(correction, x.dtype))
    return emit("Div", total, count)


@writes("std")
def std(emit: Emitter, x: Any, **options: Any) -> Any:
    return emit("Sqrt", var(emit, x, **options))


@writes("cum_sum")
def cum_sum(emit: Emitter, x: Any, *, axis: int, exclusive: bool, reverse: bool) -> Any:
    x = emit.cast(x, emit.result.dtype)
    return emit(
        "CumSum", x, np.int64(axis), exclusive=int(exclusive), reverse=int(reverse)
    )


@writes("argsort")
def argsort(emit: Emitter, x: Any, *, axis: int, descending: bool) -> Any:
    return _top(emit, x, x.shape[axis], axis, descending)[1]


@writes("top_k_places")
def top_k_places(emit: Emitter, x: Any, *, k: int, axis: int, largest: bool) -> Any:
    return _top(emit, x, k, axis, largest)[1]


@writes("top_k", "sort_with_indices")
def top_k(
    emit: Emitter, x: Any, k: Any = None, axis: int = -1, largest: bool = True,
    descending: bool = False,
) -> Any:  # fmt: skip
    if k is None:
        return _top(emit, x, x.shape[axis], axis, descending)
    return _top(emit, x, emit.results[0].shape[axis], axis, largest)


@writes("sort")
def sort(emit: Emitter, x: Any, axis: int = -1, descending: bool = False) -> Any:
    return _top(emit, x, x.shape[axis], axis, descending)[0]


def _top(emit: Emitter, x: Any, k: Any, axis: int, largest: bool) -> Any:
    return emit("TopK", x, emit.ints([k]), outputs=2, axis=axis, largest=int(largest))


@writes("unique_of")
def unique_of(emit: Emitter, x: Any, *, axis: Any = None, ordered: bool = True) -> Any:
    return emit("Unique", x, outputs=4, axis=axis, sorted=int(ordered))


@writes("median_places")
def median_places(emit: Emitter, x: Any, *, axis: int) -> Any:
    """The first place of the middle element along an axis, or of a NaN."""
    n = x.shape[axis]
    values, _ = _top(emit, x, n, axis, False)
    middle = (n - 1) // 2
    found = slices(emit, values, {axis: slice(middle, middle + 1)})
    same = emit("Cast", emit("Equal", x, found), to=6)
    if x.dtype.kind == "f":
        absent = emit("Cast", emit("IsNaN", x), to=6)
        some = emit("ReduceMax", absent, emit.ints([axis]), keepdims=1)
        same = emit("Where", emit("Cast", some, to=9), absent, same)
    return emit("ArgMax", same, axis=axis, keepdims=1)


@writes("logsumexp")
def logsumexp(emit: Emitter, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return reduced(emit, "ReduceLogSumExp", x, axis, keepdims)


@writes("cum_max", "cum_min", "running_product")
def so_far(emit: Emitter, x: Any, *, axis: int) -> Any:
    """A Scan that carries the result of earlier elements."""
    kind, axis = np.dtype(x.dtype), axis % len(x.shape)
    if kind.kind == "b":  # ONNX compares numbers alone
        kind = np.dtype(np.int32)
    ends = np.iinfo(kind) if kind.kind in "iu" else None
    op, begins = {
        "cum_max": ("Max", -np.inf if ends is None else ends.min),
        "cum_min": ("Min", np.inf if ends is None else ends.max),
        "running_product": ("Mul", 1),
    }[emit.current.name]
    sizes = [n for i, n in enumerate(x.shape) if i != axis]
    first = emit("Expand", np.asarray(begins, kind), emit.ints(sizes))
    like = Ref(0, tuple(sizes), kind)
    before, each = emit.taken(like), emit.taken(like)

    def step() -> list[Any]:
        kept = emit(op, before, each)
        return [kept, kept]

    body = emit.body("so_far", (before, each), step)
    _, made = emit(
        "Scan", first, emit.cast(x, kind), outputs=2, body=body, num_scan_inputs=1,
        scan_input_axes=[axis], scan_output_axes=[axis],
    )  # fmt: skip
    return made if kind == x.dtype else emit("Cast", made, to=int(data_type(x.dtype)))
