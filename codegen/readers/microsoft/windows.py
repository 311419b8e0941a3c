"""Sliding windows: unfold, max pooling, transposed convolutions."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
import onnx_ir as ir

from burnish.codegen.readers.microsoft.shared.bodies import (
    Builder,
    Pooling,
    Unreadable,
    array_of,
    microsoft,
    rank,
    size,
)
from burnish.codegen.readers.microsoft.shared.layouts import (
    to_channels_first,
    to_channels_last,
)


@microsoft("UnfoldTensor")
def unfold(op: Builder, input_: Any, *, dim: int = -1, size: int, step: int = 1) -> Any:
    """Windows of `size` along an axis, their elements in a new last axis."""
    axes = rank(input_)
    dim %= axes
    length = op.length(input_, dim)
    starts = op.Range(0, op.Sub(length, size - 1), step)
    places = op.Add(op.Unsqueeze(starts, [1]), np.arange(size))
    windows = op.Gather(input_, places, axis=dim)
    order = [*range(dim + 1), *range(dim + 2, axes + 1), dim + 1]
    return op.Transpose(windows, perm=order)


@microsoft("ConvTransposeWithDynamicPads")
def conv_transpose(
    op: Builder,
    X: Any,
    W: Any,
    Pads: Any = None,
    B: Any = None,
    *,
    auto_pad: str | None = None,
    dilations: Any = None,
    group: int | None = None,
    kernel_shape: Any = None,
    output_padding: Any = None,
    strides: Any = None,
) -> Any:
    return op.ConvTranspose(
        *(X, W, B),
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        output_padding=output_padding,
        pads=None if Pads is None else array_of(Pads, "pads").tolist(),
        strides=strides,
    )


@microsoft("NhwcMaxPool")
def nhwc_max_pool(
    op: Builder,
    x: Any,
    *,
    ceil_mode: int | None = None,
    dilations: Any = None,
    **window: Unpack[Pooling],
) -> Any:
    """(N, H, W, C)"""
    axes = 2 + len(window["kernel_shape"])
    y = op.MaxPool(
        to_channels_first(op, x, axes),
        ceil_mode=ceil_mode,
        dilations=dilations,
        **window,
    )
    return to_channels_last(op, y, axes)


@microsoft("MaxpoolWithMask")
def max_pool_with_mask(
    op: Builder, X: Any, M: Any, *, storage_order: int = 0, **window: Unpack[Pooling]
) -> Any:
    """A row of a window ends before its first place that the mask (1, 1, ...) hides.

    The first place of an image of two axes or three is never hidden.
    """
    kernel = window["kernel_shape"]
    axes = len(kernel)
    if (
        size(M, 0) != 1
        or size(M, 1) != 1
        or window.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID")
    ):
        raise Unreadable("expected a mask (1, 1, ...) and padding in numbers")
    if axes > 1:
        M = op.ScatterND(M, [[0] * (axes + 2)], np.ones(1, np.int32))
    pads = [*(window.get("pads") or [0] * 2 * axes)]
    strides = window.get("strides") or [1] * axes
    edges = [0, 0, *pads[:axes], 0, 0, *pads[axes:]]
    x = op.Pad(X, edges, op.lowest(X))
    mask = op.Pad(M, edges, np.array(1, np.int32))
    for i, (taps, stride) in enumerate(zip(kernel, strides, strict=True)):
        axis = 2 + 2 * i
        length = op.length(x, axis)
        starts = op.Range(0, op.Sub(length, taps - 1), stride)
        places = op.Add(op.Unsqueeze(starts, [1]), np.arange(taps))
        x, mask = (op.Gather(each, places, axis=axis) for each in (x, mask))
    hidden = op.Equal(mask, np.array(0, np.int32))
    count = op.CumSum(op.Cast(hidden, to=ir.DataType.INT32), 2 * axes + 1)
    seen = op.Equal(count, np.array(0, np.int32))
    taps_axes = [3 + 2 * i for i in range(axes)]
    return op.ReduceMax(op.Where(seen, x, op.lowest(X)), taps_axes, keepdims=0)
