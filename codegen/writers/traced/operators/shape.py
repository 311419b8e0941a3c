"""Views, concatenation, splitting, padding."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

from burnish.codegen.writers.traced.emitter import Emitter, data_type
from burnish.codegen.writers.traced.operators.elementwise import same
from burnish.codegen.writers.traced.sizes import Size
from burnish.codegen.writers.traced.table import same_as, writers, writes
from burnish.ops.arrays.padding import pairs_of


@writes("reshape")
def reshape(emit: Emitter, x: Any, *, shape: Any, keep_zeros: bool) -> Any:
    result = emit.result.shape
    if -1 not in shape:
        return emit.reshape(x, result, x.shape)
    kept = [-1 if n == -1 else m for n, m in zip(shape, result, strict=True)]
    return emit.reshape(x, kept, x.shape)


@writes("flatten")
def flatten(emit: Emitter, x: Any, start_axis: int = 0, end_axis: int = -1) -> Any:
    rank = len(x.shape)
    if start_axis == 1 and end_axis in (-1, rank - 1) and rank > 1:
        return emit("Flatten", x, axis=1)
    return emit.reshape(x, emit.result.shape, x.shape)


@writes("flatten_to_matrix")
def flatten_to_matrix(emit: Emitter, x: Any, axis: int = 1) -> Any:
    return emit("Flatten", x, axis=axis)


@writes("squeeze")
def squeeze(emit: Emitter, x: Any, axis: Any = None) -> Any:
    if axis is None:
        axis = [i for i, n in enumerate(x.shape) if n == 1]
    return emit("Squeeze", x, emit.ints(several(axis)))


@writes("unsqueeze")
def unsqueeze(emit: Emitter, x: Any, axis: Any) -> Any:
    return emit("Unsqueeze", x, emit.ints(several(axis)))


def several(axis: Any) -> list[int]:
    """One axis or several as a list."""
    return list(axis) if isinstance(axis, list | tuple) else [int(axis)]


@writes("transpose", "permute")
def transpose(emit: Emitter, x: Any, axes: Any = None) -> Any:
    rank = len(x.shape)
    order = range(rank)[::-1] if axes is None else [axis % rank for axis in axes]
    return emit("Transpose", x, perm=list(order))


@writes("broadcast_to", "expand")
def broadcast_to(emit: Emitter, x: Any, shape: Any) -> Any:
    result = emit.result.shape
    own = [1] * (len(result) - len(x.shape)) + [*x.shape]
    sizes = [1 if n == m else n for n, m in zip(result, own, strict=True)]
    return emit("Expand", x, emit.ints(sizes))


@writes("concat_of")
def concat_of(emit: Emitter, *arrays: Any, axis: int) -> Any:
    kept = same(emit, *arrays, dtype=emit.result.dtype)
    return emit("Concat", *kept, axis=axis)


@writes("split")
def split(emit: Emitter, x: Any, *, sizes: Any, axis: int, num: int | None) -> Any:
    results = emit.results
    lengths = [ref.shape[axis] for ref in results]
    options: dict[str, Any] = {"axis": axis, "outputs": len(results)}
    if num is not None:
        made = emit("Split", x, **options, num_outputs=num)
    else:
        made = emit("Split", x, emit.ints(lengths), **options)
    return made if isinstance(made, tuple) else (made,)


@writes("tile")
def tile(emit: Emitter, x: Any, *, repeats: Any) -> Any:
    more = len(repeats) - len(x.shape)
    if more > 0:
        x = emit("Unsqueeze", x, emit.ints(range(more)))
    return emit("Tile", x, emit.ints([*(1,) * -more, *repeats]))


@writes("flip")
def flip(emit: Emitter, x: Any, *, axis: Any) -> Any:
    axes = range(len(x.shape)) if axis is None else several(axis)
    axes = [a % len(x.shape) for a in axes]
    return slices(emit, x, {a: slice(None, None, -1) for a in axes})


writers["space_to_depth"] = same_as("SpaceToDepth")
_FAR = 2**63 - 1


def slices(emit: Emitter, x: Any, cuts: dict[int, slice]) -> Any:
    """x[start:stop:step] along axes."""
    starts, ends, steps = [], [], []
    for cut in cuts.values():
        step = 1 if cut.step is None else cut.step
        first, last = (0, _FAR) if step > 0 else (_FAR, -_FAR)
        starts.append(first if cut.start is None else cut.start)
        ends.append(last if cut.stop is None else cut.stop)
        steps.append(step)
    strides = None if set(steps) == {1} else emit.ints(steps)
    return emit(
        "Slice", x, emit.ints(starts), emit.ints(ends), emit.ints(cuts), strides
    )


@writes("roll")
def roll(emit: Emitter, x: Any, *, shift: Any, axis: Any) -> Any:
    if axis is None:
        flat = emit("Reshape", x, emit.ints([-1]))
        return emit.reshape(_rolled(emit, flat, shift, 0), emit.result.shape)
    made = emit.value(x)
    for by, along in zip(several(shift), several(axis), strict=True):
        made = _rolled(emit, made, by, along)
    return made


def _rolled(emit: Emitter, x: Any, by: int, axis: int) -> Any:
    if by == 0:
        return emit.value(x)
    tail = slices(emit, x, {axis: slice(-by, None)})
    return emit("Concat", tail, slices(emit, x, {axis: slice(0, -by)}), axis=axis)


@writes("depth_to_space")
def depth_to_space(emit: Emitter, x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    return emit("DepthToSpace", x, blocksize=blocksize, mode=mode)


@writes("pad_constant")
def pad_constant(emit: Emitter, x: Any, *, pads: Any, value: Any) -> Any:
    flat = [*(before for before, _ in pads), *(after for _, after in pads)]
    is_zero = isinstance(value, int | float) and value == 0
    filled = None if is_zero else emit.cast(value, x.dtype)
    return emit("Pad", x, emit.ints(flat), filled)


@writes("pad")
def pad(
    emit: Emitter,
    x: Any,
    pad_width: Any,
    mode: Any = "constant",
    *,
    constant_values: Any = 0,
    axes: Any = None,
) -> Any:
    pads = pairs_of(pad_width, len(x.shape), axes)
    if mode == "constant":
        return pad_constant(emit, x, pads=pads, value=constant_values)
    flat = [*(before for before, _ in pads), *(after for _, after in pads)]
    return emit("Pad", x, emit.ints(flat), mode=mode)


@writes("pad_repeated")
def pad_repeated(emit: Emitter, x: Any, *, runs: Any, axis: int) -> Any:
    """The places one by one."""
    if any(isinstance(n, Size) for n in (x.shape[axis], *chain(*runs))):
        raise emit.cannot("padding of a dynamic axis with its own elements")
    places = [run.start + i * run.step for run in runs for i in range(run.length)]
    return emit("Gather", x, emit.ints(places), axis=axis)


@writes("trilu")
def trilu(emit: Emitter, x: Any, *, k: int, upper: bool) -> Any:
    return emit("Trilu", x, np.int64(k), upper=int(upper))


@writes("diag_embed")
def diag_embed(emit: Emitter, x: Any, offset: int, shape: Any) -> Any:
    """The diagonal of x, by a mask over rows."""
    *lead, count = x.shape
    rows, columns = shape or (emit.result.shape[-2:])
    if any(isinstance(n, Size) for n in (count, rows, columns)):
        raise emit.cannot("a diagonal of dynamic length")
    before = max(offset, 0)
    pads = [(0, 0)] * len(lead) + [(before, columns - count - before)]
    row = pad_constant(emit, x, pads=pads, value=0)
    mask = np.eye(rows, columns, offset, dtype=bool)
    mask &= np.arange(columns) < before + count
    row = emit("Unsqueeze", row, emit.ints([-2]))
    return emit("Where", mask, row, np.zeros((), x.dtype))


@writes("eye_like")
def eye_like(emit: Emitter, x: Any, *, dtype: Any, k: int) -> Any:
    return emit("EyeLike", x, dtype=int(data_type(emit.result.dtype)), k=k)


@writes("sum_to")
def sum_to(emit: Emitter, x: Any, *, shape: Any) -> Any:
    lead = len(x.shape) - len(shape)
    axes = [*range(lead)]
    axes += [lead + i for i, n in enumerate(shape) if n == 1 and x.shape[lead + i] != 1]
    made = emit("ReduceSum", x, emit.ints(axes), keepdims=1) if axes else emit.value(x)
    return emit("Squeeze", made, emit.ints(range(lead))) if lead else made


@writes("unfold")
def unfold(emit: Emitter, x: Any, *, axis: int, size: int, step: int) -> Any:
    """Windows along an axis, their elements in a new last one."""
    axis, count = axis % len(x.shape), emit.result.shape[axis]
    starts = emit.counted(count)
    starts = emit("Mul", starts, np.int64(step))
    starts = emit("Unsqueeze", starts, emit.ints([1]))
    places = emit("Add", starts, np.arange(size))
    picked = emit("Gather", x, places, axis=axis)
    rank = len(x.shape) + 1
    order = [i for i in range(rank) if i != axis + 1] + [axis + 1]
    return emit("Transpose", picked, perm=order)
