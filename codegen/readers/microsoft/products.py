"""Matrix products and convolutions with fused epilogues."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
import onnx_ir as ir

from burnish.codegen.readers.microsoft.activations import activated
from burnish.codegen.readers.microsoft.shared.bodies import (
    Builder,
    Convolution,
    Unreadable,
    array_of,
    microsoft,
    rank,
)
from burnish.codegen.readers.microsoft.shared.layouts import (
    to_channels_first,
    to_channels_last,
)
from burnish.codegen.readers.microsoft.shared.packed import TYPES, packed, unpacked


@microsoft("FusedMatMul")
def fused_matmul(
    op: Builder,
    A: Any,
    B: Any,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Any:
    a = _turned(op, A, transA, transBatchA)
    b = _turned(op, B, transB, transBatchB)
    y = op.MatMul(a, b)
    return y if alpha == 1 else op.Mul(y, op.number(alpha, A))


@microsoft("TransposeMatMul")
def transpose_matmul(
    op: Builder, A: Any, B: Any, *, alpha: float = 1.0, transA: int = 0, transB: int = 0
) -> Any:
    return fused_matmul(op, A, B, alpha=alpha, transA=transA, transB=transB)


def _turned(op: Builder, x: Any, last: int, batch: int) -> Any:
    """The last two axes swapped; batch: the first axis comes before the last at first.

    A vector has no two axes: nothing is swapped.
    """
    if not (last or batch) or rank(x) < 2:
        return x
    axes = list(range(rank(x)))
    if batch:
        axes = [*axes[1:-1], axes[0], axes[-1]]
    if last:
        axes = [*axes[:-2], axes[-1], axes[-2]]
    return op.Transpose(x, perm=axes)


@microsoft("FusedGemm")
def fused_gemm(
    op: Builder,
    A: Any,
    B: Any,
    C: Any = None,
    *,
    activation: str = "",
    activation_alpha: float | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Any:
    y = op.Gemm(A, B, C, alpha=alpha, beta=beta, transA=transA, transB=transB)
    given = (activation_alpha, activation_beta)
    return activated(op, y, activation, [p for p in given if p is not None])


@microsoft("FusedConv")
def fused_conv(
    op: Builder,
    X: Any,
    W: Any,
    B: Any = None,
    Z: Any = None,
    *,
    activation: str = "",
    activation_params: Any = (),
    **window: Unpack[Convolution],
) -> Any:
    y = op.Conv(X, W, B, **window)
    if Z is not None:
        y = op.Add(y, Z)
    return activated(op, y, activation, activation_params)


@microsoft("NhwcConv")
def nhwc_conv(
    op: Builder,
    X: Any,
    W: Any,
    B: Any = None,
    **window: Unpack[Convolution],
) -> Any:
    """X (N, H, W, C), W (M, kH, kW, C / group), result (N, H, W, M)"""
    axes = rank(W)
    y = op.Conv(
        *(to_channels_first(op, X, axes), to_channels_first(op, W, axes), B),
        **window,
    )
    return to_channels_last(op, y, axes)


@microsoft("NhwcFusedConv")
def nhwc_fused_conv(
    op: Builder,
    X: Any,
    W: Any,
    B: Any = None,
    Z: Any = None,
    *,
    activation: str = "",
    activation_params: Any = (),
    **window: Unpack[Convolution],
) -> Any:
    """NhwcConv with a sum (N, H, W, M) and an activation behind it."""
    y = nhwc_conv(
        *(op, X, W, B),
        **window,
    )
    y = y if Z is None else op.Add(y, Z)
    return activated(op, y, activation, activation_params)


# --- weights in blocks of few bits ---


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
        raise Unreadable(f"expected weights of 4 or 8 bits as stored, got {bits}")
    blocks = -(-K // block_size)
    weight = unpacked(array_of(B, "B"), bits).reshape(N, -1)[:, :K]
    table = _table(op, scales, N, blocks)
    zeros = _zeros(op, zero_points, scales, bits, N, blocks)
    if g_idx is not None:
        table, zeros, block_size = *_by_column(g_idx, table, zeros, K), 1
    codes = op.value(packed(weight, bits))
    codes.name = B.name
    whole = op.DequantizeLinear(codes, table, zeros, axis=1, block_size=block_size)
    y = op.MatMul(A, op.Transpose(whole, perm=[1, 0]))
    return y if bias is None else op.Add(y, bias)


def _by_column(g_idx: Any, table: Any, zeros: Any, count: int) -> tuple[Any, Any]:
    """A scale and a zero point for each column."""
    places = array_of(g_idx, "g_idx")[:count]
    scales = table if isinstance(table, np.ndarray) else array_of(table, "scales")
    wide = np.ascontiguousarray(zeros.numpy()[:, places])
    return np.ascontiguousarray(scales[:, places]), ir.Tensor(wide, dtype=zeros.dtype)


def _table(op: Builder, scales: Any, rows: int, blocks: int) -> Any:
    stored = array_of(scales, "scales")
    return scales if stored.ndim == 2 else stored.reshape(rows, blocks)


def _zeros(
    op: Builder, zeros: Any, scales: Any, bits: int, rows: int, blocks: int
) -> Any:
    """Zero points, a middle one where none are given."""
    if zeros is None:
        return packed(np.full((rows, blocks), 1 << (bits - 1), np.uint8), bits)
    stored = array_of(zeros, "zero_points")
    if stored.dtype != np.uint8:
        raise Unreadable("expected zero points that are whole numbers")
    return packed(unpacked(stored, bits).reshape(rows, -1)[:, :blocks], bits)


@microsoft("GatherBlockQuantized")
def gather_block_quantised(
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
        if bits == 4 and quantize_axis % stored.ndim != stored.ndim - 1:
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
