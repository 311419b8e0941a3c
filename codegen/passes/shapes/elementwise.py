"""Shape transfer of elementwise operators and reductions; the table of all rules."""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.passes.graph import attribute
from burnish.codegen.passes.shapes import indexing, layers, views
from burnish.codegen.passes.shapes.dims import (
    Ask,
    Dims,
    Rule,
    Shapes,
    axes_of,
    axis_of,
    broadcast,
)
from burnish.codegen.symbolic.sizes import ONE


def _same(node: ir.Node, dims: list[Dims | None], ask: Ask) -> Shapes:
    return [dims[0]]


def _same_all(node: ir.Node, dims: list[Dims | None], ask: Ask) -> Shapes:
    return [dims[0] for _ in node.outputs]


def _spread(node: ir.Node, dims: list[Dims | None], ask: Ask) -> Shapes:
    return [broadcast(dims)]


def _reduced(node: ir.Node, dims: list[Dims | None], ask: Ask) -> Shapes:
    data = dims[0]
    given = len(node.inputs) > 1 and node.inputs[1] is not None
    axes = axes_of(node, ask)
    if data is None or (axes is None and given):
        return [None]
    if axes is None or not axes:
        if attribute(node, "noop_with_empty_axes", 0):
            return [data]
        axes = list(range(len(data)))
    dropped = {axis % max(len(data), 1) for axis in axes}
    if attribute(node, "keepdims", 1):
        return [[ONE if i in dropped else size for i, size in enumerate(data)]]
    return [[size for i, size in enumerate(data) if i not in dropped]]


def _best(node: ir.Node, dims: list[Dims | None], ask: Ask) -> Shapes:
    data = dims[0]
    if data is None:
        return [None]
    axis = axis_of(node) % len(data)
    if attribute(node, "keepdims", 1):
        return [[*data[:axis], ONE, *data[axis + 1 :]]]
    return [[*data[:axis], *data[axis + 1 :]]]


_ELEMENTWISE = (
    "Abs",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BitwiseNot",
    "Cast",
    "Ceil",
    "Celu",
    "Clip",
    "Cos",
    "Cosh",
    "CumSum",
    "Dropout",
    "Elu",
    "Erf",
    "Exp",
    "FakeQuantize",
    "Floor",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "IsInf",
    "IsNaN",
    "LeakyRelu",
    "Log",
    "LogSoftmax",
    "Hardmax",
    "Mish",
    "Neg",
    "Not",
    "Reciprocal",
    "Relu",
    "Round",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softmax",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Swish",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
    "Trilu",
    "BatchNormalization",
    "InstanceNormalization",
    "GroupNormalization",
    "LpNormalization",
    "LRN",
    "LocalResponseNorm",
    "Normalize",
    "ChannelShuffle",
    "LogSigmoid",
    "Roll",
    "LayerNormalization",
    "RMSNormalization",
    "RotaryEmbedding",
    "ScatterElements",
    "ScatterND",
    "DequantizeLinear",
    "QuantizeLinear",
    "EyeLike",
)
_BROADCAST = (
    "Add",
    "And",
    "BitShift",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "Div",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Max",
    "Mean",
    "Min",
    "Mod",
    "Mul",
    "Or",
    "PRelu",
    "Pow",
    "Sub",
    "Sum",
    "Where",
    "Xor",
)
_REDUCE = (
    "L1",
    "L2",
    "LogSum",
    "LogSumExp",
    "Max",
    "Mean",
    "Min",
    "Prod",
    "Sum",
    "SumSquare",
)

RULES: dict[str, Rule] = {
    **dict.fromkeys(_ELEMENTWISE, _same),
    "Dropout": _same_all,
    **dict.fromkeys(_BROADCAST, _spread),
    **{f"Reduce{kind}": _reduced for kind in _REDUCE},
    "ReduceSumSquare": _reduced,
    "ArgMax": _best,
    "ArgMin": _best,
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
    "Gemm": layers.gemm,
    "GlobalAveragePool": layers.global_pool,
    "GlobalMaxPool": layers.global_pool,
    "Index": indexing.index,
    "LSTM": layers.recurrent,
    "Linear": layers.linear,
    "MatMul": layers.matmul,
    "MaxPool": layers.pooled,
    "Pad": indexing.padded,
    "RNN": layers.recurrent,
    "Range": indexing.range_,
    "Reshape": views.reshape,
    "Slice": indexing.slice_,
    "Split": views.split,
    "Squeeze": views.squeeze,
    "Tile": indexing.tile,
    "Transpose": views.transpose,
    "Unsqueeze": views.unsqueeze,
}
