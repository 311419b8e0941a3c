"""Shape transfer of Gather, Slice, Pad, Expand and the like."""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import (
    Context,
    Dims,
    Shapes,
    axes_of,
    axis_of,
    broadcast,
    numbers,
)
from burnish.codegen.symbolic import transfer
from burnish.codegen.symbolic.sizes import ONE, Size, parse, product

_FAR = 2**30
"""From here on a bound means "to the end"."""


def slice_(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    data = dims[0]
    if data is None or len(node.inputs) < 3:
        return [None]
    starts, ends = context.ask(node.inputs[1]), context.ask(node.inputs[2])
    axes = axes_of(node, context.integers, 3)
    if len(node.inputs) <= 3 or node.inputs[3] is None:
        count = dims[1][0] if dims[1] else None
        axes = None if count is None or count.value is None else [*range(count.value)]
    steps: list[int] | None = [1] * len(axes or ())
    if len(node.inputs) > 4 and node.inputs[4] is not None:
        steps = numbers(context.ask(node.inputs[4]))
    if axes is None:
        return [[None] * len(data)]
    made = list(data)
    for i, axis in enumerate(axes):
        place = axis % len(data)
        if starts is None or ends is None or steps is None:
            made[place] = None
        else:
            made[place] = _sliced(made[place], starts[i], ends[i], steps[i])
    return [made]


def _sliced(
    size: Size | None, start: Size | None, end: Size | None, step: int
) -> Size | None:
    if size is None or start is None or end is None:
        return None
    numbers = size.value, start.value, end.value
    if None not in numbers:
        n, a, b = (int(x) for x in numbers if x is not None)
        behind = None if step < 0 and b < -n else b
        return parse(len(range(n)[slice(max(a, -n), behind, step)]))
    if step != 1:
        whole = step == -1 and start.value == -1 and (end.value or 0) < -_FAR
        return size if whole else None
    if start.value == 0:
        if end == size or (end.value is not None and end.value > _FAR):
            return size
        # the author takes as many positions of the table as there are tokens
        if end.name is not None and size.value is not None:
            return end
    return None


def gather(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    data, at = dims[0], dims[1]
    if data is None or at is None:
        return [None]
    return [transfer.gather(data, at, axis_of(node))]


def gather_nd(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    data, at = dims[0], dims[1]
    if data is None or not at or at[-1] is None or at[-1].value is None:
        return [None]
    batch = node.attributes.get_int("batch_dims", 0)
    return [transfer.gather_nd(data, at, batch + at[-1].value)]


def index(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    """Elements at places, one tensor of them for each of the first axes; or a mask."""
    data, mask, first = dims[0], dims[1], node.inputs[1]
    if first is not None and first.dtype == ir.DataType.BOOL:
        if data is None or mask is None:
            return [None]
        return [[None, *data[len(mask) :]]]
    places = [place for place in dims[1:] if place is not None]
    if data is None or len(places) < len(dims) - 1:
        return [None]
    return [transfer.index(data, places, context.sizes)]


def padded(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    data = dims[0]
    if len(node.inputs) < 2:  # an attribute, as before opset 11
        return [None if data is None else [None] * len(data)]
    pads = numbers(context.ask(node.inputs[1]))
    named = len(node.inputs) > 3 and node.inputs[3] is not None
    if data is None or pads is None or named or len(pads) != 2 * len(data):
        return [None if data is None else [None] * len(data)]
    around = [a + b for a, b in zip(pads[: len(data)], pads[len(data) :], strict=True)]
    sizes = zip(data, around, strict=True)
    return [[None if size is None else size + Size.number(n) for size, n in sizes]]


def index_shaped(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    return [dims[1]]


def tile(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    data, repeats = dims[0], context.ask(node.inputs[1])
    if data is None or repeats is None or len(data) != len(repeats):
        return [None]
    pairs = zip(data, repeats, strict=True)
    return [[None if a is None or b is None else product([a, b]) for a, b in pairs]]


def expand(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    wanted = context.ask(node.inputs[1])
    return [None if wanted is None else broadcast([dims[0], wanted], context.sizes)]


def filled(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    return [context.ask(node.inputs[0])]


def range_(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    start, limit, delta = (context.ask(value) for value in node.inputs)
    if not start or not limit or not delta or delta[0] != ONE:
        return [[None]]
    if start[0] is None or limit[0] is None:
        return [[None]]
    length = limit[0] - start[0]
    return [[length if length.nonnegative else None]]
