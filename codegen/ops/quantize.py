"""Quantize and dequantize by scale and zero point."""

from __future__ import annotations

from typing import Any

from burnish.codegen.ops._rules import (
    Result,
    call,
    known,
    onnx_op,
    operand,
    tensor,
)
from burnish.codegen.ops._words import cast as cast_to
from burnish.codegen.ops._words import dtype_name
from burnish.codegen.program import Expression, Literal


@onnx_op("QuantizeLinear", since=10)
def quantize_linear_whole(
    x: Expression, y_scale: Expression, y_zero_point: Expression | None = None
) -> Result:
    return quantized(x, y_scale, y_zero_point, 1, 0, 0)


@onnx_op("QuantizeLinear", since=13)
def quantize_linear_by_axis(
    x: Expression,
    y_scale: Expression,
    y_zero_point: Expression | None = None,
    *,
    axis: int = 1,
) -> Result:
    return quantized(x, y_scale, y_zero_point, axis, 0, 0)


@onnx_op("QuantizeLinear", since=19)
def quantize_linear_saturated(
    x: Expression,
    y_scale: Expression,
    y_zero_point: Expression | None = None,
    *,
    axis: int = 1,
    saturate: int = 1,
) -> Result:
    return quantized(x, y_scale, y_zero_point, axis, 0, 0)


@onnx_op("QuantizeLinear", since=21)
def quantize_linear_in_blocks(
    x: Expression,
    y_scale: Expression,
    y_zero_point: Expression | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    saturate: int = 1,
) -> Result:
    blocks = (axis, block_size, output_dtype)
    return quantized(x, y_scale, y_zero_point, *blocks, saturate=saturate)


@onnx_op("QuantizeLinear", since=23)
def quantize_linear(
    x: Expression,
    y_scale: Expression,
    y_zero_point: Expression | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Result:
    if precision:
        x, y_scale = (cast_to(part, dtype_name(precision)) for part in (x, y_scale))
    blocks = (axis, block_size, output_dtype)
    return quantized(x, y_scale, y_zero_point, *blocks, saturate=saturate)


def quantized(
    x: Expression,
    scale: Expression,
    zero_point: Expression | None,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    *,
    saturate: int = 1,
) -> Expression:
    """A zero point that is a number alone does not say the result's type."""
    dtype = dtype_name(output_dtype) if output_dtype else None
    options: dict[str, Any] = {
        "axis": axis,
        "block_size": block_size,
        "saturate": bool(saturate),
    }
    if zero_point is not None and (shift := _zero(zero_point)) is not None:
        dtype, zero_point = zero_point.dtype, Literal(shift) if shift else None
    elif zero_point is not None:
        dtype, zero_point = None, tensor(zero_point)
    if dtype != "uint8" or zero_point is not None:
        options["dtype"] = dtype
    return call("quantize_linear", tensor(x), operand(scale), zero_point, **options)


def _zero(zero_point: Expression) -> float | None:
    """A zero point without axes that is known, as a number."""
    array = known(zero_point)
    if array is None or array.ndim:
        return None
    return int(array) if "int" in array.dtype.name else float(array)


@onnx_op("DequantizeLinear", since=10)
def dequantize_linear_whole(
    x: Expression, x_scale: Expression, x_zero_point: Expression | None = None
) -> Result:
    return _dequantized(x, x_scale, x_zero_point, 1, 0, 0)


@onnx_op("DequantizeLinear", since=13)
def dequantize_linear_by_axis(
    x: Expression,
    x_scale: Expression,
    x_zero_point: Expression | None = None,
    *,
    axis: int = 1,
) -> Result:
    return _dequantized(x, x_scale, x_zero_point, axis, 0, 0)


@onnx_op("DequantizeLinear", since=21)
def dequantize_linear_in_blocks(
    x: Expression,
    x_scale: Expression,
    x_zero_point: Expression | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
) -> Result:
    return _dequantized(x, x_scale, x_zero_point, axis, block_size, 0)


@onnx_op("DequantizeLinear", since=23)
def dequantize_linear(
    x: Expression,
    x_scale: Expression,
    x_zero_point: Expression | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Result:
    return _dequantized(x, x_scale, x_zero_point, axis, block_size, output_dtype)


def _dequantized(
    x: Expression,
    scale: Expression,
    zero_point: Expression | None,
    axis: int,
    block_size: int,
    output_dtype: int,
) -> Result:
    """A scale that is a number alone has the type that the result has."""
    held = tensor(scale, scale.dtype)
    options = {"axis": axis, "block_size": block_size}
    if zero_point is not None and (shift := _zero(zero_point)) is not None:
        zero_point = Literal(shift) if shift else None
    y = call("dequantize_linear", tensor(x), held, zero_point, **options)
    dtype = dtype_name(output_dtype) if output_dtype else None
    return y if dtype in (None, scale.dtype) else cast_to(y, dtype)
