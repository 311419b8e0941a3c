"""Matrix products with block-quantized weights: integers, or 4-bit floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from burnish.codegen.readers.microsoft.shared.bodies import (
    Builder,
    Unreadable,
    array_of,
    microsoft,
)
from burnish.codegen.readers.microsoft.shared.packed import TYPES, packed, unpacked
from burnish.codegen.weights import constants


@microsoft("MatMulNBits")
def matmul_n_bits(
    op: Builder,
    A: Any,
    B: Any,
    scales: Any,
    zero_points: Any = None,
    g_idx: Any = None,
    bias: Any = None,
    *,
    K: int,
    N: int,
    accuracy_level: int = 0,
    bits: int = 4,
    block_size: int,
    weight_prepacked: int = 0,
) -> Any:
    """A @ weight.T + bias; B (N, blocks, bytes) holds the weight (N, K), low bits first

    g_idx: which scale each column has, where it is not that of its block.
    accuracy_level lets onnxruntime compute less exactly; nothing need follow it.
    """
    if bits not in TYPES or weight_prepacked:
        raise Unreadable(f"expected weights of 2, 4 or 8 bits as stored, got {bits}")
    blocks, width = -(-K // block_size), block_size
    weight = unpacked(array_of(B, "B"), bits).reshape(N, -1)[:, :K]
    table = _table(op, scales, N, blocks)
    is_real = zero_points is not None and zero_points.dtype != ir.DataType.UINT8
    if is_real:
        zeros = packed(np.zeros((N, blocks), np.uint8), bits)
    else:
        zeros = _zeros(zero_points, bits, N, blocks)
    if g_idx is not None:
        table, zeros, block_size = *_by_column(g_idx, table, zeros, K), 1
    codes = op.value(packed(weight, bits))
    codes.name = B.name
    whole = op.DequantizeLinear(codes, table, zeros, axis=1, block_size=block_size)
    if is_real:
        whole = op.Sub(whole, _shift(zero_points, scales, g_idx, K, N, width))
    y = op.MatMul(A, op.Transpose(whole, perm=[1, 0]))
    return y if bias is None else op.Add(y, bias)


@microsoft("MatMulNBitsQLoRA")
def matmul_n_bits_with_lora(
    op: Builder,
    X: Any,
    W: Any,
    scales: Any,
    lora_A: Any,
    lora_A_scales: Any,
    lora_B: Any,
    lora_B_scales: Any,
    *,
    K: int,
    N: int,
    accuracy_level: int = 0,
    bits: int = 4,
    block_size: int = 32,
    lora_bits: int = 8,
    lora_block_size: int = 32,
) -> Any:
    """X @ W.T + X @ lora_A.T @ lora_B.T; adapters without rows add nothing."""
    options = {"bits": bits, "block_size": block_size}
    y = matmul_n_bits(op, X, W, scales, K=K, N=N, **options)
    inner = len(array_of(lora_A, "lora_A"))
    if not inner or not len(array_of(lora_B, "lora_B")):
        return y
    options = {"bits": lora_bits, "block_size": lora_block_size}
    low = matmul_n_bits(op, X, lora_A, lora_A_scales, K=K, N=inner, **options)
    return op.Add(
        y, matmul_n_bits(op, low, lora_B, lora_B_scales, K=inner, N=N, **options)
    )


@microsoft("MatMulNBitsMlp")
def mlp_n_bits(
    op: Builder,
    A: Any,
    skip: Any,
    norm_scale: Any,
    gate_B: Any,
    gate_scales: Any,
    gate_bias: Any,
    up_B: Any,
    up_scales: Any,
    up_bias: Any = None,
    *,
    K: int,
    N: int,
    accuracy_level: int = 0,
    activation: str,
    bits: int = 4,
    block_size: int,
    epsilon: float = 1e-5,
) -> Any:
    """activation(gate) * up, both products of A, which may be normalized before"""
    a, total = _normed(op, A, skip, norm_scale, epsilon)
    sizes = {"K": K, "N": N, "bits": bits, "block_size": block_size}
    gate, up = (
        matmul_n_bits(op, a, codes, scales, bias=bias, **sizes)
        for codes, scales, bias in (
            (gate_B, gate_scales, gate_bias),
            (up_B, up_scales, up_bias),
        )
    )
    if activation in ("silu", "swish"):
        gate = op.Mul(gate, op.Sigmoid(gate))
    elif activation == "gelu":
        gate = op.Gelu(gate)
    elif activation == "relu":
        gate = op.Relu(gate)
    else:
        raise Unreadable(f"expected activation 'silu', got {activation!r}")
    return op.Mul(gate, up), total


@microsoft("MatMulNBitsQkv")
def qkv_n_bits(
    op: Builder,
    A: Any,
    skip: Any,
    norm_scale: Any,
    q_B: Any,
    q_scales: Any,
    q_bias: Any,
    k_B: Any,
    k_scales: Any,
    k_bias: Any,
    v_B: Any,
    v_scales: Any,
    v_bias: Any = None,
    *,
    K: int,
    Nkv: int,
    Nq: int,
    accuracy_level: int = 0,
    bits: int = 4,
    block_size: int,
    epsilon: float = 1e-6,
) -> Any:
    """Queries, keys and values of A, which is normalized before"""
    a, total = _normed(op, A, skip, norm_scale, epsilon)
    sizes = {"K": K, "bits": bits, "block_size": block_size}
    q, k, v = (
        matmul_n_bits(op, a, codes, scales, bias=bias, N=width, **sizes)
        for codes, scales, bias, width in (
            (q_B, q_scales, q_bias, Nq),
            (k_B, k_scales, k_bias, Nkv),
            (v_B, v_scales, v_bias, Nkv),
        )
    )
    return q, k, v, total


def _normed(
    op: Builder, a: Any, skip: Any, scale: Any, epsilon: float
) -> tuple[Any, Any]:
    """a + skip behind an RMS norm if there is one, and the sum: None without a skip."""
    total = None if skip is None else op.Add(a, skip)
    a = a if total is None else total
    if scale is not None:
        a = op.RMSNormalization(a, scale, epsilon=epsilon)
    return a, total


def _by_column(g_idx: Any, table: Any, zeros: Any, count: int) -> tuple[Any, Any]:
    """A scale and a zero point for each column."""
    places = array_of(g_idx, "g_idx")[:count]
    scales = table if isinstance(table, np.ndarray) else array_of(table, "scales")
    wide = np.ascontiguousarray(zeros.numpy()[:, places])
    return np.ascontiguousarray(scales[:, places]), ir.Tensor(wide, dtype=zeros.dtype)


def _table(op: Builder, scales: Any, rows: int, blocks: int) -> Any:
    stored = array_of(scales, "scales")
    return scales if stored.ndim == 2 else stored.reshape(rows, blocks)


def _shift(
    zeros: Any, scales: Any, g_idx: Any, columns: int, rows: int, width: int
) -> np.ndarray:
    """Real zero points times the scales, for each element: (rows, columns)"""
    table = array_of(scales, "scales").reshape(rows, -1)
    points = array_of(zeros, "zero_points").reshape(table.shape)
    places = np.arange(columns) // width
    if g_idx is not None:
        places = array_of(g_idx, "g_idx")[:columns]
    return np.ascontiguousarray((points.astype(table.dtype) * table)[:, places])


def _zeros(zeros: Any, bits: int, rows: int, blocks: int) -> Any:
    """Zero points, a middle one where none are given."""
    if zeros is None:
        return packed(np.full((rows, blocks), 1 << (bits - 1), np.uint8), bits)
    stored = array_of(zeros, "zero_points")
    return packed(unpacked(stored, bits).reshape(rows, -1)[:, :blocks], bits)


@microsoft("GatherBlockQuantized")
def gather_block_quantized(
    op: Builder,
    data: Any,
    indices: Any,
    scales: Any,
    zero_points: Any = None,
    *,
    bits: int = 4,
    block_size: int = 128,
    gather_axis: int = 0,
    quantize_axis: int = 1,
) -> Any:
    """Rows of a table that is stored in blocks of few bits."""
    if data.dtype == ir.DataType.UINT8:
        stored = array_of(data, "data")
        if bits < 8 and quantize_axis % stored.ndim != stored.ndim - 1:
            raise Unreadable("expected blocks along the last axis")
        width = array_of(scales, "scales").shape[-1]
        if zero_points is not None:
            held = unpacked(array_of(zero_points, "zero_points"), bits)
            zero_points = packed(held[..., :width], bits)
        else:
            middle = np.full(array_of(scales, "scales").shape, 1 << (bits - 1))
            zero_points = packed(middle, bits)
        data = packed(unpacked(stored, bits), bits)
    table = op.DequantizeLinear(
        *(data, scales, zero_points), axis=quantize_axis, block_size=block_size
    )
    return op.Gather(table, indices, axis=gather_axis)


_Q4_BLOCK = 32


@microsoft("MatMulFpQ4")
def matmul_fp_q4(
    op: Builder, A: Any, B: Any, B_shape: Any, *, blk_quant_type: int = 1
) -> Any:
    """A @ weight; B holds the weight (K, N) column after column in blocks of 32.

    A block is its scale, its zero point (none in type 0) and 16 bytes; each has an
    element of the first half in its low bits, one of the second in its high bits.
    """
    if blk_quant_type not in (0, 1):
        raise Unreadable(f"expected blocks of 32 elements, got type {blk_quant_type}")
    K, N = array_of(B_shape, "B_shape").tolist()
    blocks, head = -(-K // _Q4_BLOCK), 4 + blk_quant_type
    stored = array_of(B, "B").reshape(N, blocks, head + _Q4_BLOCK // 2)
    scales = np.ascontiguousarray(stored[..., :4]).view(np.float32)[..., 0]
    pairs = stored[..., head:]
    codes = np.concatenate([pairs & 15, pairs >> 4], -1).reshape(N, -1)[:, :K]
    zeros = stored[..., 4] if blk_quant_type else np.full((N, blocks), 8, np.uint8)
    held = op.value(packed(codes, 4))
    held.name = B.name
    points = packed(zeros, 4)
    whole = op.DequantizeLinear(held, scales, points, axis=1, block_size=_Q4_BLOCK)
    return op.MatMul(A, op.Transpose(whole, perm=[1, 0]))


# --- 4-bit floats, as bitsandbytes stores them ---

_FP4 = (0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4)
_NF4_BELOW = (
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
    *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495),
)
_NF4_ABOVE = (
    *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634),
    *(0.33791524171829224, 0.44070982933044434, 0.5626170039176941),
    *(0.7229568362236023, 1.0),
)
_CODES = {
    0: np.array([*_FP4, *(-each for each in _FP4)], np.float32),
    1: np.array([*_NF4_BELOW, 0, *_NF4_ABOVE], np.float32),
}
"""What each code means: FP4, and NormalFloat4 of QLoRA (Dettmers et al. 2023)."""


@microsoft("MatMulBnb4")
def matmul_bnb4(
    op: Builder,
    A: Any,
    B: Any,
    absmax: Any,
    *,
    K: int,
    N: int,
    block_size: int,
    quant_type: int,
    training_mode: int = 0,
    transB: int = 1,
) -> Any:
    """A @ weight.T; B holds the weight (N, K) row after row, the high bits first.

    absmax: the largest number of each block. The weight is a plain one then.
    """
    if quant_type not in _CODES or not transB:
        raise Unreadable(f"expected FP4 or NF4 of (N, K), got type {quant_type}")
    stored, largest = array_of(B, "B").reshape(-1), array_of(absmax, "absmax")
    codes = np.stack([stored >> 4, stored & 15], -1).reshape(-1)[: N * K]
    scales = np.repeat(largest.reshape(-1), block_size)[: N * K]
    weight = (_CODES[quant_type][codes] * scales).astype(largest.dtype)
    held = op.value(np.ascontiguousarray(weight.reshape(N, K).T))
    held.name = B.name
    constants.mark_weight(op.nodes[-1])
    return op.MatMul(A, held)
