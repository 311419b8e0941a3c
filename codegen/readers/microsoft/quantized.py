"""Operators on quantized tensors."""

from __future__ import annotations

from typing import Any, Unpack

from burnish.codegen.readers.microsoft.shared.bodies import (
    Builder,
    Convolution,
    Pooling,
    Quantized,
    Scale,
    Unreadable,
    microsoft,
    rank,
)
from burnish.codegen.readers.microsoft.shared.halves import (
    ONE,
    PRODUCTS,
    SUMS,
    even_codes,
    in_whole_steps,
    is_short,
)
from burnish.codegen.readers.microsoft.shared.layouts import (
    to_channels_first,
    to_channels_last,
)


@microsoft("QuantizeLinear")
def quantize(op: Builder, x: Any, y: Scale, *, axis: int = 1) -> Any:
    return op.QuantizeLinear(x, *y, axis=axis)


@microsoft("DequantizeLinear")
def dequantize(op: Builder, x: Quantized, *, axis: int = 1) -> Any:
    return op.DequantizeLinear(*x, axis=axis)


@microsoft("QLinearAdd")
def qlinear_add(op: Builder, A: Quantized, B: Quantized, C: Scale) -> Any:
    if all(is_short(SUMS, x.scale, C.scale) for x in (A, B)):
        a, b = (
            op.DequantizeLinear(x.codes, op.Div(x.scale, C.scale), x.zero_point)
            for x in (A, B)
        )
        return even_codes(op, op.Add(a, b), C.zero_point)
    return op.quantized(op.Add(op.dequantized(A), op.dequantized(B)), C)


@microsoft("QLinearMul")
def qlinear_mul(op: Builder, A: Quantized, B: Quantized, C: Scale) -> Any:
    if is_short(PRODUCTS, A.scale, C.scale, B.scale):
        a, b = (op.DequantizeLinear(x.codes, ONE, x.zero_point) for x in (A, B))
        ratio = op.Div(op.Mul(A.scale, B.scale), C.scale)
        return even_codes(op, op.Mul(op.Mul(a, b), ratio), C.zero_point)
    return op.quantized(op.Mul(op.dequantized(A), op.dequantized(B)), C)


@microsoft("QLinearSigmoid")
def qlinear_sigmoid(op: Builder, X: Quantized, Y: Scale) -> Any:
    return op.quantized(op.Sigmoid(op.dequantized(X)), Y)


@microsoft("QLinearLeakyRelu")
def qlinear_leaky_relu(
    op: Builder, X: Quantized, Y: Scale, *, alpha: float = 0.01
) -> Any:
    return op.quantized(op.LeakyRelu(op.dequantized(X), alpha=alpha), Y)


@microsoft("QLinearSoftmax")
def qlinear_softmax(
    op: Builder, X: Quantized, Y: Scale, *, axis: int = -1, opset: int
) -> Any:
    if opset < 13 and axis not in (-1, rank(X.codes) - 1):
        raise Unreadable("expected a softmax along the last axis")
    y = op.Softmax(op.dequantized(X), axis=axis)
    return op.quantized(in_whole_steps(op, y, Y.scale), Y)


@microsoft("QLinearConcat")
def qlinear_concat(op: Builder, Y: Scale, *inputs: Any, axis: int) -> Any:
    parts = [inputs[start : start + 3] for start in range(0, len(inputs), 3)]
    y = op.Concat(*(op.DequantizeLinear(*part) for part in parts), axis=axis)
    return op.quantized(y, Y)


@microsoft("QLinearWhere")
def qlinear_where(
    op: Builder, condition: Any, X: Quantized, Y: Quantized, Z: Scale
) -> Any:
    x, y = op.dequantized(X), op.dequantized(Y)
    return op.quantized(op.Where(condition, x, y), Z)


@microsoft("QLinearGlobalAveragePool")
def qlinear_global_average_pool(
    op: Builder, X: Quantized, Y: Scale, *, channels_last: int = 0
) -> Any:
    axes = rank(X.codes) if channels_last else 0
    x = X._replace(codes=to_channels_first(op, X.codes, axes))
    if is_short(SUMS, X.scale, Y.scale):
        whole = op.DequantizeLinear(x.codes, ONE, X.zero_point)
        count = op.ReduceProd(op.Shape(whole, start=2), keepdims=0)
        ratio = op.Div(X.scale, op.Mul(Y.scale, op.CastLike(count, Y.scale)))
        y = op.ReduceSum(whole, [*range(2, rank(X.codes))])
        y = op.QuantizeLinear(op.Mul(y, ratio), ONE, Y.zero_point)
    else:
        y = op.quantized(op.GlobalAveragePool(op.dequantized(x)), Y)
    return to_channels_last(op, y, axes)


@microsoft("QLinearAveragePool")
def qlinear_average_pool(
    op: Builder,
    X: Quantized,
    Y: Scale,
    *,
    ceil_mode: int = 0,
    channels_last: int = 0,
    count_include_pad: int = 0,
    **window: Unpack[Pooling],
) -> Any:
    axes = 2 + len(window["kernel_shape"]) if channels_last else 0
    x = X._replace(codes=to_channels_first(op, X.codes, axes))
    y = op.AveragePool(
        op.dequantized(x),
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        **window,
    )
    if is_short(SUMS, X.scale, Y.scale):
        y = even_codes(op, op.Div(y, Y.scale), Y.zero_point)
    else:
        y = op.quantized(y, Y)
    return to_channels_last(op, y, axes)


@microsoft("QLinearConv")
def qlinear_conv(
    op: Builder,
    x: Quantized,
    w: Quantized,
    y: Scale,
    B: Any = None,
    *,
    channels_last: int = 0,
    **window: Unpack[Convolution],
) -> Any:
    axes = rank(w.codes) if channels_last else 0
    image = x._replace(codes=to_channels_first(op, x.codes, axes))
    made = op.QLinearConv(*image, *w, *y, B, **window)
    return to_channels_last(op, made, axes)


@microsoft("QLinearReduceMean")
def reduce_mean(
    op: Builder, data: Quantized, reduced: Scale, *, axes: Any, keepdims: int
) -> Any:
    """The mean of the real numbers, over all axes where there are none, quantized."""
    y = op.ReduceMean(op.dequantized(data), list(axes) or None, keepdims=keepdims)
    if reduced.zero_point is None:
        reduced = reduced._replace(zero_point=op.number(0, data.codes))
    return op.quantized(y, reduced)
