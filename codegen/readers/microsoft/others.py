"""Operators that ONNX adopted later, and CDist."""

from __future__ import annotations

from typing import Any

from burnish.codegen.readers.microsoft._bodies import Builder, Unreadable, microsoft
from burnish.codegen.readers.microsoft._layouts import (
    to_channels_first,
    to_channels_last,
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


@microsoft("NhwcMaxPool")
def nhwc_max_pool(
    op: Builder,
    x: Any,
    *,
    auto_pad: str | None = None,
    ceil_mode: int | None = None,
    dilations: Any = None,
    kernel_shape: Any,
    pads: Any = None,
    strides: Any = None,
) -> Any:
    """(N, H, W, C)"""
    axes = 2 + len(kernel_shape)
    y = op.MaxPool(
        to_channels_first(op, x, axes),
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
        dilations=dilations,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    return to_channels_last(op, y, axes)
