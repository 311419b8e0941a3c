"""Matrix products, LSTM and attention of onnxruntime on quantized tensors."""

from __future__ import annotations

from typing import Any, TypedDict, Unpack

import numpy as np
import onnx_ir as ir

from burnish.codegen.ops.quantized.quantize import ON_INPUT
from burnish.codegen.readers.microsoft.attention.multihead import from_projection
from burnish.codegen.readers.microsoft.shared.bodies import (
    Builder,
    Quantized,
    Scale,
    Unreadable,
    array_of,
    microsoft,
    size,
)

_FLOAT = Scale(None)


@microsoft("QGemm")
def qgemm(
    op: Builder,
    A: Quantized,
    B: Quantized,
    C: Any = None,
    Y: Scale = _FLOAT,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Any:
    """C is a whole number of a_scale * b_scale; the result is float without y_scale."""
    a, b = op.dequantized(A), op.DequantizeLinear(*B, axis=0 if transB else 1)
    if C is not None:
        C = op.DequantizeLinear(C, _steps(op, A.scale, B.scale, alpha), axis=0)
    y = op.Gemm(a, b, C, alpha=alpha, transA=transA, transB=transB)
    return y if Y.scale is None else op.quantized(y, Y)


def _steps(op: Builder, a_scale: Any, b_scale: Any, alpha: float) -> Any:
    """The scale of the integer sums: a constant where both scales are."""
    if a_scale.const_value is None or b_scale.const_value is None:
        scale = op.Mul(a_scale, b_scale)
        return scale if alpha == 1 else op.Mul(scale, op.number(alpha, a_scale))
    step = array_of(a_scale, "a_scale").reshape(()) * array_of(b_scale, "b_scale")
    return np.asarray(step * np.float32(alpha), np.float32)


@microsoft("MatMulIntegerToFloat")
def matmul_integer_to_float(
    op: Builder,
    A: Any,
    B: Any,
    a_scale: Any,
    b_scale: Any,
    a_zero_point: Any = None,
    b_zero_point: Any = None,
    bias: Any = None,
) -> Any:
    whole = op.MatMulInteger(A, B, a_zero_point, b_zero_point)
    y = op.Mul(op.Cast(whole, to=ir.DataType.FLOAT), op.Mul(a_scale, b_scale))
    return y if bias is None else op.Add(y, bias)


@microsoft("DynamicQuantizeMatMul")
def dynamic_quantize_matmul(
    op: Builder,
    A: Any,
    B: Any,
    b_scale: Any,
    b_zero_point: Any = None,
    bias: Any = None,
) -> Any:
    """A's scale and zero point are those of its own range, found at every call."""
    a, a_scale, a_zero_point = op.make("", "DynamicQuantizeLinear", (A,), {}, 3)
    return matmul_integer_to_float(
        op, a, B, a_scale, b_scale, a_zero_point, b_zero_point, bias
    )


class Recurrent(TypedDict, total=False):
    """The attributes of an LSTM."""

    activation_alpha: Any
    activation_beta: Any
    activations: Any
    clip: float
    direction: str
    hidden_size: int
    input_forget: int


@microsoft("DynamicQuantizeLSTM")
def dynamic_quantize_lstm(
    op: Builder,
    X: Any,
    W: Any,
    R: Any,
    B: Any,
    sequence_lens: Any,
    initial_h: Any,
    initial_c: Any,
    P: Any,
    W_scale: Any,
    W_zero_point: Any,
    R_scale: Any,
    R_zero_point: Any,
    **options: Unpack[Recurrent],
) -> Any:
    """W (D, I, 4 * H) and R (D, H, 4 * H) transposed; scales (D,) or (D, 4 * H).

    X and every step's states are rounded over the range of the whole batch.
    """
    weights = (
        _recurrent_weight(op, codes, scale, zero)
        for codes, scale, zero in (
            (W, W_scale, W_zero_point),
            (R, R_scale, R_zero_point),
        )
    )
    inputs = (X, *weights, B, sequence_lens, initial_h, initial_c, P)
    made = op.make("", "LSTM", inputs, {**options}, 3)
    node = made[0].producer()
    assert node is not None
    node.metadata_props[ON_INPUT] = "{}"
    return tuple(made)


def _recurrent_weight(op: Builder, codes: Any, scale: Any, zero: Any) -> Any:
    """(D, inputs, 4 * H) of few bits to the float weight (D, 4 * H, inputs)."""
    scales, zeros = array_of(scale, "scales"), array_of(zero, "zero points")
    inputs = size(codes, 1)
    if scales.ndim == 1 and zeros.ndim == 1:
        whole = op.DequantizeLinear(codes, scale, zero, axis=0)
    elif inputs is None:
        raise Unreadable("expected weights of a known size")
    else:
        shape = len(scales), 1, max(scales[0].size, zeros[0].size)
        both = (
            np.broadcast_to(part.reshape(len(part), 1, -1), shape).copy()
            for part in (scales, zeros)
        )
        whole = op.DequantizeLinear(codes, *both, axis=1, block_size=inputs)
    return op.Transpose(whole, perm=[0, 2, 1])


@microsoft("QAttention")
def qattention(
    op: Builder,
    input_: Any,
    weight: Any,
    bias: Any,
    input_scale: Any,
    weight_scale: Any,
    mask_index: Any = None,
    input_zero_point: Any = None,
    weight_zero_point: Any = None,
    past: Any = None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: int = 0,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> Any:
    width = size(weight, 1)
    if do_rotary or past_present_share_buffer or width is None:
        raise Unreadable("expected no rotary positions, and a cache of its own")
    x = matmul_integer_to_float(
        *(op, input_, weight, input_scale, weight_scale),
        *(input_zero_point, weight_zero_point, bias),
    )
    return from_projection(
        *(op, x, mask_index, past, None),
        sizes=[width // 3] * 3,
        heads=num_heads,
        low=mask_filter_value,
        scale=scale,
        causal=unidirectional,
    )


@microsoft("MulInteger")
def mul_integer(
    op: Builder, A: Any, A_zero_point: Any, B: Any, B_zero_point: Any = None
) -> Any:
    """(A - A_zero_point) * (B - B_zero_point) in int32"""
    return op.Mul(_shifted(op, A, A_zero_point), _shifted(op, B, B_zero_point))


def _shifted(op: Builder, x: Any, zero_point: Any) -> Any:
    whole = op.Cast(x, to=ir.DataType.INT32)
    if zero_point is None:
        return whole
    return op.Sub(whole, op.Cast(zero_point, to=ir.DataType.INT32))


@microsoft("ReduceSumInteger")
def reduce_sum_integer(op: Builder, data: Any, *, axes: Any, keepdims: int) -> Any:
    """The sum of integers of 8 bits in int32; over all axes where there are none"""
    whole = op.Cast(data, to=ir.DataType.INT32)
    return op.ReduceSum(whole, list(axes) or None, keepdims=keepdims)
