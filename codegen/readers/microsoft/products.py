"""Matrix products and convolutions with fused epilogues."""

from __future__ import annotations

from typing import Any, Unpack

from burnish.codegen.readers.microsoft.activations import activated
from burnish.codegen.readers.microsoft.shared.bodies import (
    Builder,
    Convolution,
    microsoft,
    rank,
)
from burnish.codegen.readers.microsoft.shared.layouts import (
    to_channels_first,
    to_channels_last,
)


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


@microsoft("SparseToDenseMatMul")
@microsoft("TransposeMatMul")
def transpose_matmul(
    op: Builder, A: Any, B: Any, *, alpha: float = 1.0, transA: int = 0, transB: int = 0
) -> Any:
    """SparseToDenseMatMul's A is sparse in the file, and fed as a dense matrix."""
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


@microsoft("FusedMatMulActivation")
def fused_matmul_activation(
    op: Builder,
    A: Any,
    B: Any,
    *,
    activation: str,
    activation_alpha: float | None = None,
    activation_axis: int | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Any:
    turned = {"transBatchA": transBatchA, "transBatchB": transBatchB}
    y = fused_matmul(op, A, B, alpha=alpha, transA=transA, transB=transB, **turned)
    if activation == "Softmax":
        return op.Softmax(y, axis=-1 if activation_axis is None else activation_axis)
    given = (activation_alpha, activation_beta)
    return activated(op, y, activation, [p for p in given if p is not None])


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
    image, filters = (to_channels_first(op, x, axes) for x in (X, W))
    return to_channels_last(op, op.Conv(image, filters, B, **window), axes)


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
    y = nhwc_conv(op, X, W, B, **window)
    y = y if Z is None else op.Add(y, Z)
    return activated(op, y, activation, activation_params)
