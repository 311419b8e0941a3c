"""Experimental operators that ONNX withdrew and onnxruntime still runs.

Converters from Core ML and CNTK wrote them, in ONNX's own domain.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.codegen.readers.microsoft.shared.bodies import (
    Builder,
    Unreadable,
    microsoft,
)

WITHDRAWN = frozenset(
    (
        *("Affine", "Crop", "DynamicSlice", "ImageScaler", "ParametricSoftplus"),
        *("Scale", "ScaledTanh"),
    )
)


@microsoft("Affine")
def affine(op: Builder, X: Any, *, alpha: float = 1.0, beta: float = 0.0) -> Any:
    return op.Add(op.Mul(X, op.number(alpha, X)), op.number(beta, X))


@microsoft("Crop")
def crop(op: Builder, input_: Any, *, border: Any, scale: Any = None) -> Any:
    """input_ (N, C, H, W); border: left, top, right, bottom; scale: height, width"""
    if len(border) != 4 or (scale and len(scale) != 2):
        raise Unreadable(f"expected a border of 4 numbers, got {list(border)}")
    left, top, right, bottom = border
    if scale:
        height, width = scale
        return op.Slice(input_, [top, left], [top + height, left + width], [2, 3])
    ends = op.Sub(op.Shape(input_, start=2, end=4), [bottom, right])
    return op.Slice(input_, [top, left], ends, [2, 3])


@microsoft("DynamicSlice")
def dynamic_slice(
    op: Builder, data: Any, starts: Any, ends: Any, axes: Any = None
) -> Any:
    return op.Slice(data, starts, ends, axes)


@microsoft("ImageScaler")
def image_scaler(op: Builder, input_: Any, *, scale: float = 1.0, bias: Any) -> Any:
    """input_ (N, C, H, W) * scale + bias (C)"""
    shift = op.value(np.array(bias, np.float32).reshape(-1, 1, 1))
    return op.Add(op.Mul(input_, op.number(scale, input_)), op.CastLike(shift, input_))


@microsoft("MeanVarianceNormalization")
def mean_variance_normalization(
    op: Builder, input_: Any, *, across_channels: int = 0, normalize_variance: int = 1
) -> Any:
    """input_ (N, C, H, W) less its mean, over its deviation; the form of opsets to 8"""
    axes = [0, 1, 2, 3] if across_channels else [0, 2, 3]
    if normalize_variance:
        return op.MeanVarianceNormalization(input_, axes=axes)
    return op.Sub(input_, op.ReduceMean(input_, axes, keepdims=1))


@microsoft("ParametricSoftplus")
def parametric_softplus(op: Builder, X: Any, *, alpha: float, beta: float) -> Any:
    inner = op.Softplus(op.Mul(X, op.number(beta, X)))
    return op.Mul(inner, op.number(alpha, X))


@microsoft("Scale")
def scale_(op: Builder, input_: Any, *, scale: float = 1.0) -> Any:
    return op.Mul(input_, op.number(scale, input_))


@microsoft("ScaledTanh")
def scaled_tanh(op: Builder, input_: Any, *, alpha: float, beta: float) -> Any:
    inner = op.Tanh(op.Mul(input_, op.number(beta, input_)))
    return op.Mul(inner, op.number(alpha, input_))
