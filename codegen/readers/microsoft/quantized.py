"""Operators on quantized tensors."""

from __future__ import annotations

from typing import Any, Unpack

from burnish.codegen.readers.microsoft.shared.bodies import (
    Builder,
    Convolution,
    Pooling,
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
def quantize(
    op: Builder, x: Any, y_scale: Any, y_zero_point: Any = None, *, axis: int = 1
) -> Any:
    return op.QuantizeLinear(x, y_scale, y_zero_point, axis=axis)


@microsoft("DequantizeLinear")
def dequantize(
    op: Builder, x: Any, x_scale: Any, x_zero_point: Any = None, *, axis: int = 1
) -> Any:
    return op.DequantizeLinear(x, x_scale, x_zero_point, axis=axis)


@microsoft("QLinearAdd")
def qlinear_add(
    op: Builder,
    A: Any,
    A_scale: Any,
    A_zero_point: Any,
    B: Any,
    B_scale: Any,
    B_zero_point: Any,
    C_scale: Any,
    C_zero_point: Any = None,
) -> Any:
    if all(is_short(SUMS, scale, C_scale) for scale in (A_scale, B_scale)):
        a = op.DequantizeLinear(A, op.Div(A_scale, C_scale), A_zero_point)
        b = op.DequantizeLinear(B, op.Div(B_scale, C_scale), B_zero_point)
        return even_codes(op, op.Add(a, b), C_zero_point)
    a = op.DequantizeLinear(A, A_scale, A_zero_point)
    b = op.DequantizeLinear(B, B_scale, B_zero_point)
    return op.QuantizeLinear(op.Add(a, b), C_scale, C_zero_point)


@microsoft("QLinearMul")
def qlinear_mul(
    op: Builder,
    A: Any,
    A_scale: Any,
    A_zero_point: Any,
    B: Any,
    B_scale: Any,
    B_zero_point: Any,
    C_scale: Any,
    C_zero_point: Any = None,
) -> Any:
    if is_short(PRODUCTS, A_scale, C_scale, B_scale):
        a = op.DequantizeLinear(A, ONE, A_zero_point)
        b = op.DequantizeLinear(B, ONE, B_zero_point)
        ratio = op.Div(op.Mul(A_scale, B_scale), C_scale)
        return even_codes(op, op.Mul(op.Mul(a, b), ratio), C_zero_point)
    a = op.DequantizeLinear(A, A_scale, A_zero_point)
    b = op.DequantizeLinear(B, B_scale, B_zero_point)
    return op.QuantizeLinear(op.Mul(a, b), C_scale, C_zero_point)


@microsoft("QLinearSigmoid")
def qlinear_sigmoid(
    op: Builder,
    X: Any,
    X_scale: Any,
    X_zero_point: Any,
    Y_scale: Any,
    Y_zero_point: Any = None,
) -> Any:
    y = op.Sigmoid(op.DequantizeLinear(X, X_scale, X_zero_point))
    return op.QuantizeLinear(y, Y_scale, Y_zero_point)


@microsoft("QLinearLeakyRelu")
def qlinear_leaky_relu(
    op: Builder,
    X: Any,
    X_scale: Any,
    X_zero_point: Any,
    Y_scale: Any,
    Y_zero_point: Any = None,
    *,
    alpha: float = 0.01,
) -> Any:
    y = op.LeakyRelu(op.DequantizeLinear(X, X_scale, X_zero_point), alpha=alpha)
    return op.QuantizeLinear(y, Y_scale, Y_zero_point)


@microsoft("QLinearSoftmax")
def qlinear_softmax(
    op: Builder,
    X: Any,
    X_scale: Any,
    x_zero_point: Any,
    y_scale: Any,
    y_zero_point: Any,
    *,
    axis: int = -1,
    opset: int,
) -> Any:
    if opset < 13 and axis not in (-1, rank(X) - 1):
        raise Unreadable("expected a softmax along the last axis")
    y = op.Softmax(op.DequantizeLinear(X, X_scale, x_zero_point), axis=axis)
    return op.QuantizeLinear(in_whole_steps(op, y, y_scale), y_scale, y_zero_point)


@microsoft("QLinearConcat")
def qlinear_concat(
    op: Builder, Y_scale: Any, Y_zero_point: Any, *inputs: Any, axis: int
) -> Any:
    parts = [inputs[start : start + 3] for start in range(0, len(inputs), 3)]
    y = op.Concat(*(op.DequantizeLinear(*part) for part in parts), axis=axis)
    return op.QuantizeLinear(y, Y_scale, Y_zero_point)


@microsoft("QLinearWhere")
def qlinear_where(
    op: Builder,
    condition: Any,
    X: Any,
    x_scale: Any,
    x_zero_point: Any,
    Y: Any,
    y_scale: Any,
    y_zero_point: Any,
    z_scale: Any,
    z_zero_point: Any,
) -> Any:
    x = op.DequantizeLinear(X, x_scale, x_zero_point)
    y = op.DequantizeLinear(Y, y_scale, y_zero_point)
    return op.QuantizeLinear(op.Where(condition, x, y), z_scale, z_zero_point)


@microsoft("QLinearGlobalAveragePool")
def qlinear_global_average_pool(
    op: Builder,
    X: Any,
    x_scale: Any,
    x_zero_point: Any,
    y_scale: Any,
    y_zero_point: Any,
    *,
    channels_last: int = 0,
) -> Any:
    axes = rank(X) if channels_last else 0
    x = to_channels_first(op, X, axes)
    if is_short(SUMS, x_scale, y_scale):
        x = op.DequantizeLinear(x, ONE, x_zero_point)
        count = op.ReduceProd(op.Shape(x, start=2), keepdims=0)
        ratio = op.Div(x_scale, op.Mul(y_scale, op.CastLike(count, y_scale)))
        y = op.ReduceSum(x, [*range(2, rank(X))])
        y = op.QuantizeLinear(op.Mul(y, ratio), ONE, y_zero_point)
    else:
        y = op.GlobalAveragePool(op.DequantizeLinear(x, x_scale, x_zero_point))
        y = op.QuantizeLinear(y, y_scale, y_zero_point)
    return to_channels_last(op, y, axes)


@microsoft("QLinearAveragePool")
def qlinear_average_pool(
    op: Builder,
    X: Any,
    x_scale: Any,
    x_zero_point: Any,
    y_scale: Any,
    y_zero_point: Any = None,
    *,
    ceil_mode: int = 0,
    channels_last: int = 0,
    count_include_pad: int = 0,
    **window: Unpack[Pooling],
) -> Any:
    axes = 2 + len(window["kernel_shape"]) if channels_last else 0
    x = to_channels_first(op, X, axes)
    y = op.AveragePool(
        op.DequantizeLinear(x, x_scale, x_zero_point),
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        **window,
    )
    if is_short(SUMS, x_scale, y_scale):
        y = even_codes(op, op.Div(y, y_scale), y_zero_point)
    else:
        y = op.QuantizeLinear(y, y_scale, y_zero_point)
    return to_channels_last(op, y, axes)


@microsoft("QLinearConv")
def qlinear_conv(
    op: Builder,
    x: Any,
    x_scale: Any,
    x_zero_point: Any,
    w: Any,
    w_scale: Any,
    w_zero_point: Any,
    y_scale: Any,
    y_zero_point: Any,
    B: Any = None,
    *,
    channels_last: int = 0,
    **window: Unpack[Convolution],
) -> Any:
    axes = rank(w) if channels_last else 0
    y = op.QLinearConv(
        *(to_channels_first(op, x, axes), x_scale, x_zero_point),
        *(w, w_scale, w_zero_point, y_scale, y_zero_point, B),
        **window,
    )
    return to_channels_last(op, y, axes)


@microsoft("QLinearReduceMean")
def reduce_mean(
    op: Builder,
    data: Any,
    data_scale: Any,
    data_zero_point: Any,
    reduced_scale: Any,
    reduced_zero_point: Any = None,
    *,
    axes: Any,
    keepdims: int,
) -> Any:
    """The mean of the real numbers, over all axes where there are none, quantized."""
    x = op.DequantizeLinear(data, data_scale, data_zero_point)
    y = op.ReduceMean(x, list(axes) or None, keepdims=keepdims)
    if reduced_zero_point is None:
        reduced_zero_point = op.number(0, data)
    return op.QuantizeLinear(y, reduced_scale, reduced_zero_point)
