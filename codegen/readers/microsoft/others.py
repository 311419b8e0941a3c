"""Operators that ONNX adopted later, and short compositions of its operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from burnish.codegen.readers.microsoft.shared.bodies import (
    END,
    Builder,
    Unreadable,
    microsoft,
)


@microsoft("Trilu")
def trilu(op: Builder, X: Any, k: Any = None, *, upper: int = 1) -> Any:
    return op.Trilu(X, k, upper=upper)


@microsoft("GatherND")
def gather_nd(op: Builder, data: Any, indices: Any) -> Any:
    return op.GatherND(data, indices)


@microsoft("Range")
def range_(op: Builder, start: Any, limit: Any, delta: Any = None) -> Any:
    return op.Range(start, limit, op.number(1, start) if delta is None else delta)


@microsoft("SampleOp")
def sample_op(op: Builder, X: Any) -> Any:
    return op.Identity(X)


@microsoft("ExpandDims")
def expand_dims(op: Builder, X: Any, axis: Any) -> Any:
    return op.Unsqueeze(X, op.Reshape(axis, [1]))


@microsoft("Pad")
def pad(
    op: Builder, data: Any, pads: Any, value: Any = None, *, mode: str = "constant"
) -> Any:
    return op.Pad(data, op.Reshape(pads, [-1]), value, mode=mode)


@microsoft("GridSample")
def grid_sample(
    op: Builder,
    X: Any,
    Grid: Any,
    *,
    align_corners: int = 0,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
) -> Any:
    names = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}
    return op.GridSample(
        *(X, Grid),
        align_corners=align_corners,
        mode=names[mode],
        padding_mode=padding_mode,
    )


@microsoft("CDist")
def cdist(op: Builder, A: Any, B: Any, *, metric: str = "sqeuclidean") -> Any:
    """Distances of every row of A from every row of B."""
    apart = op.Sub(op.Unsqueeze(A, [1]), op.Unsqueeze(B, [0]))
    squared = op.ReduceSum(op.Mul(apart, apart), [-1], keepdims=0)
    if metric == "sqeuclidean":
        return squared
    if metric == "euclidean":
        return op.Sqrt(squared)
    raise Unreadable(f"expected a Euclidean metric, got {metric}")


@microsoft("Unique")
def unique(op: Builder, x: Any) -> Any:
    """Values in the order of their first places, where each was, and how often."""
    values, _, places, counts = op.make("", "Unique", (x,), {"sorted": 0}, 4)
    return values, places, counts


@microsoft("Tokenizer")
def tokenizer(
    op: Builder,
    X: Any,
    *,
    mark: int,
    mincharnum: int,
    pad_value: str,
    separators: Any = None,
    tokenexp: str | None = None,
) -> Any:
    """skl2onnx writes it for CountVectorizer and TfidfVectorizer."""
    options = {
        "mark": mark,
        "mincharnum": mincharnum,
        "pad_value": pad_value,
        "separators": separators,
        "tokenexp": tokenexp,
    }
    (y,) = op.make("burnish", "Tokenizer", (X,), options)
    y.dtype = ir.DataType.STRING
    if X.shape is not None:
        y.shape = ir.Shape([*X.shape, None])
    return y


@microsoft("MurmurHash3")
def murmur_hash(op: Builder, X: Any, *, positive: int = 1, seed: int = 0) -> Any:
    """skl2onnx writes it for FeatureHasher."""
    given = {"positive": positive, "seed": seed}
    (y,) = op.make("burnish", "MurmurHash3", (X,), given)
    y.dtype = ir.DataType.UINT32 if positive else ir.DataType.INT32
    y.shape = X.shape
    return y


@microsoft("Inverse")
def inverse(op: Builder, X: Any) -> Any:
    """The inverse of matrices; those in half precision are inverted in float32."""
    is_half = X.dtype == ir.DataType.FLOAT16
    x = op.Cast(X, to=ir.DataType.FLOAT) if is_half else X
    (y,) = op.make("burnish", "Inverse", (x,), {})
    y.dtype, y.shape = ir.DataType.FLOAT if is_half else X.dtype, X.shape
    return op.Cast(y, to=X.dtype) if is_half else y


@microsoft("MatMulInteger16")
def matmul_integer16(op: Builder, A: Any, B: Any) -> Any:
    return op.MatMul(*(op.Cast(x, to=ir.DataType.INT32) for x in (A, B)))


# --- spectra ---


@microsoft("Rfft")
def rfft(
    op: Builder, X: Any, *, normalized: int = 0, onesided: int = 1, signal_ndim: int = 1
) -> Any:
    """The half of the spectrum over the last axes: (..., n // 2 + 1, 2)"""
    _check_spectrum(normalized, onesided, signal_ndim)
    y = op.DFT(op.Unsqueeze(X, [-1]), None, -2, onesided=1)
    return op.DFT(y, None, -3) if signal_ndim == 2 else y


@microsoft("Irfft")
def irfft(
    op: Builder, X: Any, *, normalized: int = 0, onesided: int = 1, signal_ndim: int = 1
) -> Any:
    """The real signal (..., n), n even, of the half of its spectrum"""
    _check_spectrum(normalized, onesided, signal_ndim)
    half = op.DFT(X, None, -3, inverse=1) if signal_ndim == 2 else X
    mirrored = op.Slice(half, [-2], [-END], [-2], [-1])
    mirrored = op.Slice(mirrored, [0], [-1], [-2])
    mirrored = op.Mul(mirrored, op.CastLike(np.array([1, -1], np.float32), X))
    whole = op.DFT(op.Concat(half, mirrored, axis=-2), None, -2, inverse=1)
    return op.Gather(whole, 0, axis=-1)


def _check_spectrum(normalized: int, onesided: int, axes: int) -> None:
    if normalized or not onesided or axes not in (1, 2):
        raise Unreadable("expected the half of a spectrum of 1 or 2 axes, unscaled")


@microsoft("ComplexMul")
def complex_mul(op: Builder, A: Any, B: Any) -> Any:
    """A * B, real and imaginary parts in the last axis"""
    return _complex_product(op, A, B, 1)


@microsoft("ComplexMulConj")
def complex_mul_conj(op: Builder, A: Any, B: Any) -> Any:
    """A * conj(B)"""
    return _complex_product(op, A, B, -1)


def _complex_product(op: Builder, a: Any, b: Any, sign: int) -> Any:
    (re_a, im_a), (re_b, im_b) = (op.split(x, -1, [1, 1]) for x in (a, b))
    first, second = op.Mul(im_a, im_b), op.Mul(re_a, im_b)
    if sign > 0:
        real = op.Sub(op.Mul(re_a, re_b), first)
        imaginary = op.Add(op.Mul(im_a, re_b), second)
    else:
        real = op.Add(op.Mul(re_a, re_b), first)
        imaginary = op.Sub(op.Mul(im_a, re_b), second)
    return op.Concat(real, imaginary, axis=-1)


@microsoft("TorchEmbedding")
def torch_embedding(
    op: Builder,
    weight: Any,
    indices: Any,
    padding_idx: Any = None,
    scale_grad_by_freq: Any = None,
) -> Any:
    """What training leaves out or scales changes no embedding."""
    return op.Gather(weight, indices, axis=0)


@microsoft("IsAllFinite")
def is_all_finite(
    op: Builder, *input_: Any, isinf_only: int = 0, isnan_only: int = 0
) -> Any:
    """Whether no element of any input is NaN or infinite, or is the one asked for."""
    if isinf_only and isnan_only:
        raise Unreadable("expected isinf_only or isnan_only, got both")
    found = []
    for x in input_:
        kinds = [] if isinf_only else [op.IsNaN(x)]
        kinds += [] if isnan_only else [op.IsInf(x)]
        odd = kinds[0] if len(kinds) == 1 else op.Or(*kinds)
        found.append(op.Reshape(op.Cast(odd, to=ir.DataType.INT64), [-1]))
    count = op.ReduceSum(op.Concat(*found, axis=0), keepdims=0)
    return op.Equal(count, np.array(0, np.int64))
