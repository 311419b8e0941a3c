"""Quantization: scales, zero points, dequantized values."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from burnish.codegen.writers.traced.emitter import Emitter
from burnish.codegen.writers.traced.table import writes
from burnish.lowbit import Level, QuantScheme
from burnish.ops.quantized.small import small

_FLOAT = int(ir.DataType.FLOAT)
_TYPES = {
    **{"q4s": ir.DataType.INT4, "q4f": ir.DataType.INT4},
    **{"q8s": ir.DataType.INT8, "q8f": ir.DataType.INT8},
    **{"q16s": ir.DataType.INT16, "q16f": ir.DataType.INT16},
    **{"e4m3": ir.DataType.FLOAT8E4M3FN, "e5m2": ir.DataType.FLOAT8E5M2},
}


@writes("quantize_linear")
def quantize_linear(
    emit: Emitter,
    x: Any,
    scale: Any,
    zero_point: Any = None,
    *,
    axis: int,
    block_size: int,
    dtype: Any,
    saturate: bool,
) -> Any:
    zero = zero_point
    if zero is None and emit.result.dtype != np.uint8:
        zero = np.zeros(getattr(scale, "shape", ()), emit.result.dtype)
    return emit(
        "QuantizeLinear", x, scale, zero,
        axis=axis, saturate=int(saturate), block_size=block_size or None,
    )  # fmt: skip


@writes("dequantize_linear")
def dequantize_linear(
    emit: Emitter,
    x: Any,
    scale: Any,
    zero_point: Any = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    dtype: Any = None,
) -> Any:
    size = block_size or None
    return emit("DequantizeLinear", x, scale, zero_point, axis=axis, block_size=size)


@writes("step calibrated")
def calibrated(emit: Emitter, x: Any, *, scheme: QuantScheme) -> Any:
    if scheme.level != Level.tensor() or x.dtype != np.float32:
        raise emit.cannot("scales of parts of what it is given")
    kind = scheme.kind
    if scheme.mode == "affine" and scheme.value == "q8f":
        _, scale, zero = emit("DynamicQuantizeLinear", x, outputs=3)
        shifted = emit("Sub", emit.cast(zero, np.dtype(np.int32)), np.int32(128))
        return (
            _in_shape(emit, scale, emit.results[0].shape),
            _in_shape(
                emit, emit.cast(shifted, np.dtype(np.int8)), emit.results[1].shape
            ),
        )
    if scheme.mode != "symmetric":
        raise emit.cannot(f"zero points of {scheme.value}")
    most = emit("ReduceMax", emit("Abs", x), keepdims=0)
    scale = emit("Div", most, np.float32((kind.high - kind.low) / 2))
    known = emit("Where", emit("Greater", scale, np.float32(0)), scale, np.float32(1))
    return _in_shape(emit, known, emit.results[0].shape), None


@writes("fake_quantize")
def fake_quantize(
    emit: Emitter,
    x: Any,
    scales: Any,
    zero_points: Any = None,
    *,
    value: str,
    blocks: tuple[int, ...],
) -> Any:
    dynamic = _dynamic(emit, x, scales)
    if dynamic is not None:
        return emit("DequantizeLinear", *dynamic.outputs)
    if value not in _TYPES:
        raise emit.cannot(f"numbers of {value}")
    axis = _axis(emit, tuple(x.shape), blocks)
    count = () if axis is None else (x.shape[axis],)
    scale = _in_shape(emit, scales, count)
    kind = small(value)
    zero: Any = np.zeros(count, kind.dtype) if kind.whole else None
    if zero_points is not None:
        zero = _in_shape(emit, zero_points, count)
    if kind.bits == 4:
        zero = _in_four_bits(emit, zero)
    given = emit.cast(x, np.dtype(np.float32))
    if value in ("q4s", "q8s", "q16s"):  # the least number of the type is not theirs
        along = count if axis is None else (*count, *(1 for _ in x.shape[axis + 1 :]))
        least = emit("Mul", _in_shape(emit, scale, along), np.float32(kind.low))
        given = emit("Max", given, least)
    dtype = None if value in ("q8s", "q8f") else int(_TYPES[value])
    codes = emit("QuantizeLinear", given, scale, zero, axis=axis, output_dtype=dtype)
    made = emit("DequantizeLinear", codes, scale, zero, axis=axis)
    narrow = emit.result.dtype != np.float32
    return emit.cast(made, emit.result.dtype) if narrow else made


def _in_four_bits(emit: Emitter, codes: Any) -> ir.Value:
    """Whole numbers, which NumPy has in 8 bits, in ONNX's 4."""
    value = emit.value(codes)
    if value.const_value is None:
        return emit("Cast", value, to=int(ir.DataType.INT4))
    return emit.constant(value.const_value.numpy().astype(ml_dtypes.int4))


def _dynamic(emit: Emitter, x: Any, scales: Any) -> ir.Node | None:
    """The DynamicQuantizeLinear of x that scales are of."""
    node = _source(emit, scales).producer()
    if node is None or node.op_type != "DynamicQuantizeLinear":
        return None
    return node if node.inputs[0] is emit.value(x) else None


def _source(emit: Emitter, item: Any) -> ir.Value:
    """Scales or zero points before they were reshaped."""
    value = emit.value(item)
    node = value.producer()
    if node is None or node.op_type != "Reshape" or node.inputs[0] is None:
        return value
    return _source(emit, node.inputs[0])


def _axis(emit: Emitter, shape: Any, blocks: tuple[int, ...]) -> int | None:
    """The axis with a scale for each place; None where there is one for all."""
    kept = len(blocks) - 1
    view = (*shape[:kept], math.prod(shape[kept:]))
    several = [i for i, (n, b) in enumerate(zip(view, blocks, strict=True)) if b < n]
    if not several:
        return None
    (axis, *more) = several
    is_last = axis == kept and len(shape) > len(blocks)
    if more or blocks[axis] != 1 or is_last:
        raise emit.cannot("scales of blocks")
    return axis


def _in_shape(emit: Emitter, item: Any, shape: tuple[int, ...]) -> Any:
    """Scales or zero points in another shape, at once where they are known."""
    value = _source(emit, item)
    if value.shape is not None and value.shape == shape:
        return value
    if value.const_value is not None:
        return emit.constant(value.const_value.numpy().reshape(shape))
    return emit("Reshape", value, emit.ints(shape))
