"""Products and convolutions of quantized inputs and weights, summed in integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burnish.kernels.records import ACTIVATIONS
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.convolution.geometry import Window
from burnish.plan.cpu.convolution.weights import biases
from burnish.plan.cpu.layout import (
    CHANNELS,
    LANES,
    PLAIN,
    Layout,
    blocks,
    pixels,
)
from burnish.plan.cpu.lowbit.codes import Maps, codes
from burnish.plan.cpu.lowbit.rounded import scheme
from burnish.plan.cpu.lowbit.weights import Whole, whole
from burnish.plan.graph import Node, Value

_DEEPEST = 1 << 15
"""Products of codes whose sum, with what zero points add, is in 32 bits."""

_TOGETHER = 4
"""Inputs whose products are added at once."""

_TILE, _MOST_COLUMNS = 12, 64
"""Pixels of a tile, and columns that it may go over, where channels have windows."""

_FEW_ROWS = 6
"""Rows up to which tiles are as wide as they can be."""


def _is_usable(b: Builder, node: Node) -> bool:
    x = node.args[0]
    return isinstance(x, Value) and x.place in b.rounded and b.may_fault


def quantized_linear(b: Builder, node: Node) -> bool:
    """A product with a matrix of codes, where input and weight have them."""
    if not _is_usable(b, node):
        return False
    x, weight, bias, *residual = node.args
    found = whole(b, weight, bool(node.options.get("turned")))
    width = x.shape[-1]
    row, deep = _upwards(width, LANES), _upwards(width, _TOGETHER)
    rows = x.size // width
    if found is None or row > _DEEPEST or rows * row >= 2**31:
        return False
    maps = Maps(1, (1, rows), (0, 0), (0, 0), row)
    outs = found.outs
    _add(
        b, node, x, found, maps, PLAIN, width, bias,
        begins=np.arange(rows) * row, runs=[(0, 0, deep)], channels=width,
        out=b.result(node.result), out_row=outs, out_block=LANES,
        residual=b.spot(residual[0]) if residual else None,
    )  # fmt: skip
    return True


def quantized_conv(b: Builder, node: Node, w: Window) -> bool:
    """A convolution of codes, of one or two axes, where input and weight have them."""
    x, weight, bias, *residual = node.args
    rank, groups = len(w.sizes), node.options["groups"]
    if not _is_usable(b, node) or rank > 2:
        return False
    images, count = x.shape[:2]
    is_own = groups == count == weight.shape[0] and groups > 1
    if groups != 1 and not is_own:
        return False
    rounded, found = b.rounded[x.place], whole(b, weight, False)
    is_narrow = count < LANES and not b.has(rounded.x, CHANNELS) and not is_own
    row = _upwards(count, _TOGETHER if is_narrow else LANES)
    if found is None or not rounded.one or math.prod(w.kernel) * row > _DEEPEST:
        return False
    if is_own and not (found.is_symmetric and _columns(w) <= _MOST_COLUMNS):
        return False
    spans = [d * (k - 1) + 1 for d, k in zip(w.dilation, w.kernel, strict=True)]
    behind = [
        max(0, (o - 1) * s + span - before - n)
        for o, s, span, before, n in zip(
            w.out, w.stride, spans, w.before, w.sizes, strict=True
        )
    ]
    full = (0,) * (2 - rank)
    ones = (1,) * (2 - rank)
    maps = Maps(
        images, (*ones, *w.sizes), (*full, *w.before), (*full, *behind), row
    )  # fmt: skip
    if maps.bytes >= 2**31:
        return False
    high, wide = (sum(each) for each in maps.margined)
    out, stride = (*ones, *w.out), (*ones, *w.stride)
    kernel, dilation = (*ones, *w.kernel), (*ones, *w.dilation)
    begins = (
        np.arange(images)[:, None, None] * high * wide
        + (np.arange(out[0]) * stride[0] * wide)[:, None]
        + np.arange(out[1]) * stride[1]
    ).reshape(-1) * row
    deep = row if is_own else _upwards(count, _TOGETHER)
    runs = [
        ((i * dilation[0] * wide + j * dilation[1]) * row, 0, deep)
        for i in range(kernel[0])
        for j in range(kernel[1])
    ]
    if dilation[1] == 1 and deep == row:  # the taps of a row are adjacent
        runs = [(x, 0, kernel[1] * row) for x, _, _ in runs[:: kernel[1]]]
    own = {
        "kernel0": kernel[0], "kernel1": kernel[1], "dilation0": dilation[0],
        "dilation1": dilation[1], "stride": stride[1], "line": wide * row, "row": row,
        "width": out[1],
    }  # fmt: skip
    _add(
        b, node, x, found, maps, PLAIN if is_narrow else CHANNELS, count, bias,
        plane=math.prod(w.sizes) if is_narrow else 0,
        begins=begins, runs=runs, channels=count,
        out=b.result(node.result, CHANNELS), out_row=LANES,
        out_block=LANES * pixels(node.result.shape, 1),
        residual=b.spot(residual[0], CHANNELS) if residual else None,
        window=own if is_own else None,
    )  # fmt: skip
    return True


def _columns(w: Window) -> int:
    """Columns of input that the windows of a tile go over."""
    return (_TILE - 1) * w.stride[-1] + (w.kernel[-1] - 1) * w.dilation[-1] + 1


_NO_WINDOW = {
    "kernel0": 0, "kernel1": 0, "dilation0": 0, "dilation1": 0, "stride": 0, "line": 0,
    "row": 0, "width": 0,
}  # fmt: skip


def _add(
    b: Builder, node: Node, x: Value, weight: Whole, maps: Maps, layout: Layout,
    width: int, bias: Any, *, begins: Any, runs: Any, channels: int, out: Spot,
    out_row: int, out_block: int, residual: Spot | None, plane: int = 0,
    window: dict[str, int] | None = None,
) -> None:  # fmt: skip
    """window: where each channel has weights of its own, how it goes."""
    rounded = b.rounded[x.place]
    held = codes(b, x, maps, layout, width, plane)
    rows, count = len(begins), blocks(weight.outs)
    nr = 4 if rows <= _FEW_ROWS and count >= 4 else min(count, 2)
    depth = sum(length for _, _, length in runs)
    if window is None:
        packed = weight.packed(nr, channels, _upwards(channels, _TOGETHER))
        flops = 2 * rows * depth * weight.outs
    else:
        nr, kernel = 1, (window["kernel0"], window["kernel1"])
        packed, depth = weight.windows(kernel), _upwards(kernel[0], 4) * kernel[1]
        flops = 2 * rows * math.prod(kernel) * weight.outs
    groups = -(-count // nr)
    lanes = groups * nr * LANES
    act, low, high = node.act
    given = scheme(b, rounded)
    b.add(
        "quantized", b.shares(flops / (32 if window is None else 4)), flops=flops,
        x=held, x_scale=given["scale"], x_zero=given["zero"],
        weight=b.constant(packed),
        scale=b.constant(weight.scales(lanes)), zero=b.constant(weight.zeros(lanes)),
        total=b.constant(weight.totals(lanes)),
        bias=biases(b, bias, 1, weight.outs, lanes), residual=residual, out=out,
        **{"from": b.table(begins)}, runs=b.table(runs), n_runs=len(runs), rows=rows,
        groups=groups, nr=nr, depth=depth, one=rounded.one, outs=weight.outs,
        out_row=out_row, out_block=out_block, act=ACTIVATIONS.index(act), low=low,
        high=high, codes=None, places=None, values=None, y_scale=None, y_zero=None,
        fault=None, y_low=0, y_high=0, **(window or _NO_WINDOW),
    )  # fmt: skip


def _upwards(n: int, step: int) -> int:
    return -(-n // step) * step
