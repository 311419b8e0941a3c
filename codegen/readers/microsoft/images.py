"""Operators of diffusion models and detectors: channels-last norms, crops."""

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
from burnish.codegen.readers.microsoft.shared.layouts import (
    to_channels_first,
    to_channels_last,
)

_IMAGE = 4
"""The axes of a batch of images."""
_HALF, _ONE = np.array([0.5], np.float32), np.array([1], np.float32)


@microsoft("GroupNorm")
def group_norm(
    op: Builder,
    X: Any,
    gamma: Any,
    beta: Any,
    *,
    epsilon: float = 1e-5,
    groups: int,
    activation: int,
    channels_last: int = 1,
) -> Any:
    """activation: 1 is SiLU. gamma and beta are float32 whatever X is."""
    axes = _IMAGE if channels_last else 0
    image = to_channels_first(op, X, axes)
    options = {"num_groups": groups, "epsilon": epsilon}
    y = op.GroupNormalization(image, _like(op, gamma, X), _like(op, beta, X), **options)
    if activation not in (0, 1):
        raise Unreadable(f"expected activation 0 or 1, got {activation}")
    return to_channels_last(op, op.Mul(y, op.Sigmoid(y)) if activation else y, axes)


def _like(op: Builder, weight: Any, x: Any) -> Any:
    """A weight in the type of x."""
    return weight if weight.dtype == x.dtype else op.CastLike(weight, x)


@microsoft("SkipGroupNorm")
def skip_group_norm(
    op: Builder,
    X: Any,
    gamma: Any,
    beta: Any,
    skip: Any,
    bias: Any = None,
    *,
    epsilon: float = 1e-5,
    groups: int,
    activation: int,
    channels_last: int = 1,
) -> Any:
    """(N, H, W, C); skip may be (N, 1, 1, C) or (N, C), bias is (C)."""
    if not channels_last:
        raise Unreadable("expected channels_last, as onnxruntime has it")
    if skip.shape is None:
        raise Unreadable(f"expected {skip.name!r} with a known number of axes")
    skip = op.Unsqueeze(skip, [1, 2]) if len(skip.shape) == 2 else skip
    total = op.Add(X if bias is None else op.Add(X, bias), skip)
    total.dtype, total.shape = X.dtype, X.shape
    y = group_norm(
        *(op, total, gamma, beta), epsilon=epsilon, groups=groups, activation=activation
    )
    return y, total


@microsoft("BiasAdd")
def bias_add(op: Builder, X: Any, bias: Any, skip: Any) -> Any:
    return op.Add(op.Add(X, bias), skip)


@microsoft("BiasSplitGelu")
def bias_split_gelu(op: Builder, X: Any, bias: Any) -> Any:
    """The first half of the features times the GELU of the second."""
    total = op.Add(X, bias)
    halves = op.make("", "Split", (total,), {"axis": -1, "num_outputs": 2}, 2)
    return op.Mul(halves[0], op.Gelu(halves[1]))


@microsoft("CropAndResize")
def crop_and_resize(
    op: Builder,
    X: Any,
    rois: Any,
    batch_indices: Any,
    crop_size: Any,
    *,
    mode: str = "bilinear",
    extrapolation_value: float = 0.0,
) -> Any:
    """Each region (y1, x1, y2, x2), as shares of height - 1 and width - 1, sampled."""
    sizes = array_of(crop_size, "crop_size").tolist()
    corners = op.split(op.Cast(rois, to=ir.DataType.FLOAT), 1, [1, 1, 1, 1])
    ys = _places(op, corners[0], corners[2], sizes[0])
    xs = _places(op, corners[1], corners[3], sizes[1])
    whole = op.Concat(op.Shape(rois, start=0, end=1), np.array(sizes), axis=0)
    rows = op.Expand(op.Unsqueeze(ys, [2]), whole)
    columns = op.Expand(op.Unsqueeze(xs, [1]), whole)
    farthest = op.Max(op.Abs(rows), op.Abs(columns))
    if mode == "nearest":
        rows, columns = _rounded(op, rows, X, 2), _rounded(op, columns, X, 3)
    y = op.GridSample(
        op.Gather(X, op.Cast(batch_indices, to=ir.DataType.INT64), axis=0),
        op.Concat(op.Unsqueeze(columns, [3]), op.Unsqueeze(rows, [3]), axis=3),
        align_corners=1,
        padding_mode="border",
        mode="nearest" if mode == "nearest" else "linear",
    )
    outside = op.Greater(op.Unsqueeze(farthest, [1]), _ONE)
    return op.Where(outside, op.number(extrapolation_value, X), y)


def _places(op: Builder, start: Any, end: Any, count: int) -> Any:
    """Coordinates of `count` samples from start to end, -1 to 1: (regions, count)."""
    steps = np.linspace(0, 1, count) if count > 1 else np.array([0.5])
    shares = op.Mul(op.Sub(end, start), steps.astype(np.float32)[None])
    at = op.Add(start, shares)
    return op.Sub(op.Add(at, at), _ONE)


def _rounded(op: Builder, places: Any, x: Any, axis: int) -> Any:
    """The places of the nearest pixels; halves go up, as onnxruntime has them."""
    size = op.Cast(op.Shape(x, start=axis, end=axis + 1), to=ir.DataType.FLOAT)
    steps = op.Mul(op.Max(op.Sub(size, _ONE), _ONE), _HALF)
    pixels = op.Floor(op.Add(op.Mul(op.Add(places, _ONE), steps), _HALF))
    return op.Sub(op.Div(pixels, steps), _ONE)
