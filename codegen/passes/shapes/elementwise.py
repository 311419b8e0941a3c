"""Shape transfer of elementwise operators and reductions; the table of all rules."""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.ops import Trait, having
from burnish.codegen.passes.graph import attribute
from burnish.codegen.passes.shapes import indexing, layers, views
from burnish.codegen.passes.shapes.dims import (
    Context,
    Dims,
    Rule,
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


def _same_all(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    return [dims[0] for _ in node.outputs]


def _spread(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    return [broadcast(dims, context.sizes)]


def _reduced(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    data = dims[0]
    given = len(node.inputs) > 1 and node.inputs[1] is not None
    axes = axes_of(node, context)
    if data is None or (axes is None and given):
        return [None]
    if axes is None or not axes:
        if attribute(node, "noop_with_empty_axes", 0):
            return [data]
        axes = list(range(len(data)))
    return [_without(node, data, axes)]


def _without(node: ir.Node, data: Dims, axes: list[int]) -> Dims:
    """The sizes behind a reduction over axes."""
    if attribute(node, "keepdims", 1):
        return transfer.replaced(data, axes, lambda _: ONE)
    return transfer.squeezed(data, axes)


def _best(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    data = dims[0]
    return [None if data is None else _without(node, data, [axis_of(node)])]


RULES: dict[str, Rule] = {
    **dict.fromkeys(having(Trait.ELEMENTWISE | Trait.SAME_SHAPE), same),
    "Dropout": _same_all,
    **dict.fromkeys(having(Trait.BROADCAST), _spread),
    **dict.fromkeys(having(Trait.REDUCTION), _reduced),
    **dict.fromkeys(having(Trait.REDUCTION_TO_INDEX), _best),
    "Attention": layers.attention,
    "AveragePool": layers.pooled,
    "Concat": views.concat,
    "ConstantOfShape": indexing.filled,
    "Conv": layers.conv,
    "Expand": indexing.expand,
    "Flatten": views.flatten,
    "GRU": layers.recurrent,
    "Gather": indexing.gather,
    "GatherElements": indexing.index_shaped,
    "GatherND": indexing.gather_nd,
    "Gemm": layers.matmul,
    "GlobalAveragePool": layers.global_pool,
    "GlobalMaxPool": layers.global_pool,
    "Index": indexing.index,
    "LSTM": layers.recurrent,
    "Linear": layers.matmul,
    "MatMul": layers.matmul,
    "MaxPool": layers.pooled,
    "Pad": indexing.padded,
    "RNN": layers.recurrent,
    "Range": indexing.range_,
    "Reshape": views.reshape,
    "Resize": layers.resized,
    "Slice": indexing.slice_,
    "Split": views.split,
    "Squeeze": views.squeeze,
    "Tile": indexing.tile,
    "Transpose": views.transpose,
    "Unsqueeze": views.unsqueeze,
}
