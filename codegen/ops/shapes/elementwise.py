"""Shape transfer of elementwise operators and reductions."""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import (
    Context,
    Dims,
    Shapes,
    axes_of,
    axis_of,
    broadcast,
)
from burnish.codegen.symbolic import transfer
from burnish.codegen.symbolic.sizes import ONE


def same(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    """The shape of the first input."""
    return [dims[0]]


def same_all(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    return [dims[0] for _ in node.outputs]


def spread(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    return [broadcast(dims, context.sizes)]


def reduced(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    data = dims[0]
    given = len(node.inputs) > 1 and node.inputs[1] is not None
    axes = axes_of(node, context.integers)
    if data is None or (axes is None and given):
        return [None]
    if axes is None or not axes:
        if node.attributes.get_int("noop_with_empty_axes", 0):
            return [data]
        axes = list(range(len(data)))
    return [_without(node, data, axes)]


def _without(node: ir.Node, data: Dims, axes: list[int]) -> Dims:
    """The sizes behind a reduction over axes."""
    if node.attributes.get_int("keepdims", 1):
        return transfer.replaced(data, axes, lambda _: ONE)
    return transfer.squeezed(data, axes)


def reduced_to_index(
    node: ir.Node, dims: list[Dims | None], context: Context
) -> Shapes:
    data = dims[0]
    return [None if data is None else _without(node, data, [axis_of(node)])]
