"""Shape transfer of Reshape, Transpose, Concat and Split."""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import (
    Context,
    Dims,
    Shapes,
    Sizes,
    axes_of,
    axis_of,
    known,
)
from burnish.codegen.symbolic import transfer
from burnish.codegen.symbolic.sizes import ONE, Size, parse, product


def transpose(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    data = dims[0]
    if data is None:
        return [None]
    order = node.attributes.get_ints("perm", range(len(data))[::-1])
    return [transfer.transposed(data, order)]


def reshape(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    sizes = context.ask(node.inputs[1])
    if sizes is None:
        return [None]
    data = dims[0]
    if not node.attributes.get_int("allowzero", 0):
        sizes = [
            (data[i] if data and i < len(data) else None)
            if size is not None and size.value == 0
            else size
            for i, size in enumerate(sizes)
        ]
    minus = [i for i, size in enumerate(sizes) if size is not None and size.value == -1]
    whole = known(data)
    if len(minus) == 1:
        rest = known([size for i, size in enumerate(sizes) if i != minus[0]])
        sizes = list(sizes)
        sizes[minus[0]] = None
        if whole is not None and rest is not None:
            sizes[minus[0]] = _quotient(whole, rest)
    return [sizes]


def _quotient(whole: list[Size], rest: list[Size]) -> Size | None:
    """The size for -1; sizes on both sides cancel."""
    left = list(whole)
    right = []
    for size in rest:
        if size in left:
            left.remove(size)
        else:
            right.append(size)
    below = product(right)
    return None if below.value == 0 else product(left).divided(below)


def squeeze(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    data, axes = dims[0], axes_of(node, context.integers)
    if data is None or axes is None:
        return [None]
    return [transfer.squeezed(data, axes)]


def unsqueeze(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    data, axes = dims[0], axes_of(node, context.integers)
    if data is None or axes is None:
        return [None]
    return [transfer.unsqueezed(data, axes, lambda: ONE)]


def concat(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    given = [d for d in dims if d is not None]
    if len(given) < len(dims):
        return [None]
    return [transfer.concat(given, axis_of(node), context.sizes)]


def split(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    data, count = dims[0], len(node.outputs)
    if data is None:
        return [None] * count
    axis = axis_of(node) % len(data)
    held = node.attributes.get_ints("split")
    parts: Sizes | None = None
    if held is not None:
        parts = [parse(n) for n in held]
    elif len(node.inputs) > 1 and node.inputs[1] is not None:
        parts = context.ask(node.inputs[1])
    elif data[axis] is not None:
        whole = data[axis]
        assert whole is not None
        parts = [whole.divided(Size.number(count))] * count
    parts = parts or [None] * count
    return transfer.split(data, axis, parts, context.sizes) or [None] * count


def flatten(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    data = known(dims[0])
    if data is None:
        return [None]
    axis = axis_of(node, 1)
    axis += len(data) if axis < 0 else 0
    return [[product(data[:axis]), product(data[axis:])]]
