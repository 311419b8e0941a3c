"""Products and convolutions of quantized inputs and weights, summed as whole numbers.

An input that is rounded (`fake_quantize`) is not stored as such: products of quantized
weights read its codes, a byte each, and any other reader has it computed then.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from burnish.kernels.records import ACTIVATIONS
from burnish.lowbit import Level
from burnish.ops.small import small
from burnish.plan.cpu.builder import Builder, Spot
from burnish.plan.cpu.geometry import Window
from burnish.plan.cpu.layout import (
    CHANNELS,
    LANES,
    PLAIN,
    Layout,
    blocks,
    length,
    pixels,
)
from burnish.plan.cpu.quantized_weights import Whole, whole
from burnish.plan.cpu.table import LOWERED, lower, need
from burnish.plan.cpu.weights import biases
from burnish.plan.graph import Constant, Node, Value

_DEEPEST = 1 << 15
"""Products of codes whose sum, with what zero points add, is in 32 bits."""

_FEW_ROWS = 6
"""Rows up to which tiles are as wide as they can be."""


_MOVING = ("reshape", "transpose", "getitem", "flip", "max_pool")
"""Operators whose result has the same codes, whether x is rounded before or after."""


class Rounded(NamedTuple):
    """The origin of a rounded value: x, and how to read its codes.

    one: a scale for all of x; else one for each row, along the last axis.
    """

    x: Value
    scale: Value | Constant
    zero: Value | Constant | None
    low: int
    high: int
    one: bool

    @property
    def values(self) -> list[Value]:
        parts = self.x, self.scale, self.zero
        return [part for part in parts if isinstance(part, Value)]


class _Maps(NamedTuple):
    """Codes of maps: sizes, margins before and after, bytes from pixel to pixel."""

    images: int
    sizes: tuple[int, ...]
    before: tuple[int, ...]
    behind: tuple[int, ...]
    row: int

    @property
    def bytes(self) -> int:
        high, wide = (sum(each) for each in self.margined)
        return self.images * high * wide * self.row

    @property
    def margined(self) -> list[tuple[int, int, int]]:
        return list(zip(self.before, self.sizes, self.behind, strict=True))


@lower("calibrated")
def calibrated(b: Builder, node: Node) -> None:
    """Scales that cover an array: of all of it, or of each row."""
    (x,), scheme = node.args, node.options["scheme"]
    need(isinstance(x, Value) and x.dtype == np.float32, "it is not single precision")
    need(x.size, "it has no elements")
    need(scheme.kind.whole and scheme.param == "float32", f"its scheme is {scheme}")
    need(scheme.level.kind in ("tensor", "row"), f"its scheme is {scheme}")
    fault = b.fault()
    is_whole = scheme.level.kind == "tensor"
    source = b.spot(x, _any_layout(b, x) if is_whole else PLAIN)
    rows = 1 if is_whole else x.size // x.shape[-1]
    scale = b.result(node.results[0])
    zero = b.result(node.results[1]) if scheme.mode == "affine" else None
    b.add(
        "calibrate", b.shares(x.size / 4) if rows > 1 else 1, x=source, scale=scale,
        zero=zero, fault=fault, rows=rows, width=x.size // rows,
        low=scheme.kind.low, high=scheme.kind.high,
    )  # fmt: skip


@lower("fake_quantize")
def fake_quantize(b: Builder, node: Node) -> None:
    """Nothing yet: readers have the codes, or the values once they ask for them."""
    x, scale, zero = node.args
    kind, result = small(node.options["value"]), node.result
    need(isinstance(x, Value) and x.dtype == np.float32, "it is not single precision")
    need(x.size, "it has no elements")
    need(kind.whole and kind.bits <= 8, f"its values are {node.options['value']}")
    need(scale.dtype == np.float32, "its scales are not single precision")
    need(zero is None or zero.dtype == np.int8, "its zero points are no bytes")
    is_one = math.prod(scale.shape) == 1
    is_by_row = node.options["blocks"] == Level.row().blocks(x.shape)
    need(is_one or is_by_row, "it has scales of blocks or channels")
    _defer(b, result, Rounded(x, scale, zero, int(kind.low), int(kind.high), is_one))


def moved(b: Builder, node: Node) -> bool:
    """Bring x, not what is rounded of it, to other places: the same codes, moved.

    False where the node moves no value of one scale.
    """
    x = node.args[0] if node.args and node.name in _MOVING else None
    rounded = b.rounded.get(x.place) if isinstance(x, Value) else None
    if rounded is None or not rounded.one:
        return False
    result = node.result
    held = b.unnamed_value(result.shape)
    args = [rounded.x, *node.args[1:]]
    LOWERED[node.name](b, dataclasses.replace(node, args=args, results=[held]))
    _defer(b, result, rounded._replace(x=held))
    return True


def _defer(b: Builder, result: Value, rounded: Rounded) -> None:
    b.rounded[result.place] = rounded
    b.deferred[result.place] = lambda: _values(b, result, rounded)


def _any_layout(b: Builder, x: Value) -> Layout:
    """The layout of x; plain where others hold more than its elements."""
    forms = b.forms.get(x.place, ())
    return next((form for form in forms if length(x.shape, form) == x.size), PLAIN)


def _values(b: Builder, result: Value, r: Rounded) -> None:
    label, b.label = b.label, "fake_quantize"
    forms = b.forms.get(r.x.place)
    layout = next(iter(forms)) if forms and r.one else PLAIN
    source, count = b.spot(r.x, layout), length(r.x.shape, layout)
    width = r.x.shape[-1] if r.x.shape else 1
    if layout.kind == "blocked":
        width = LANES * pixels(r.x.shape, layout.axis)
    b.add(
        "fake_quantize", b.shares(4 * count), x=source, **_scheme(b, r),
        out=b.result(result, layout), rows=count // width, width=width, one=r.one,
    )  # fmt: skip
    b.label = label


def _scheme(b: Builder, r: Rounded) -> dict[str, Any]:
    zero = None if r.zero is None else b.spot(r.zero)
    return {"scale": b.spot(r.scale), "zero": zero, "low": r.low, "high": r.high}


def _codes(
    b: Builder, place: int, r: Rounded, maps: _Maps, layout: Layout, width: int
) -> Spot:
    """The codes of a rounded value, once for all readers that see them alike."""
    key = (place, maps)
    if key not in b.codes:
        source, step = b.spot(r.x, layout), LANES
        if layout.kind != "blocked":
            step = width
        label, b.label = b.label, "quantize"
        b.codes[key] = b.new(maps.bytes)
        count = LANES * maps.images * math.prod(maps.sizes)
        b.add(
            "quantize", b.shares(4 * r.x.size), x=source, **_scheme(b, r),
            out=b.codes[key], fault=b.fault(), images=maps.images, width=width,
            size0=maps.sizes[0], size1=maps.sizes[1], before0=maps.before[0],
            before1=maps.before[1], behind0=maps.behind[0], behind1=maps.behind[1],
            one=r.one, x_row=step, out_row=maps.row,
            x_block=count if layout.kind == "blocked" else LANES,
        )  # fmt: skip
        b.label = label
    return b.codes[key]


def _is_usable(b: Builder, node: Node) -> bool:
    return node.args[0].place in b.rounded and b.may_fault


def quantized_linear(b: Builder, node: Node) -> bool:
    """A product with a matrix of codes, where input and weight have them."""
    if not _is_usable(b, node):
        return False
    x, weight, bias, *residual = node.args
    found = whole(b, weight, bool(node.options.get("turned")))
    width = x.shape[-1]
    row = _upwards(width, LANES)
    rows = x.size // width
    if found is None or row > _DEEPEST or rows * row >= 2**31:
        return False
    maps = _Maps(1, (1, rows), (0, 0), (0, 0), row)
    outs = found.outs
    _add(
        b, node, x.place, found, maps, PLAIN, width, bias,
        begins=np.arange(rows) * row, runs=[(0, 0, row)], channels=width,
        out=b.result(node.result), out_row=outs, out_block=LANES,
        residual=b.spot(residual[0]) if residual else None,
    )  # fmt: skip
    return True


def quantized_conv(b: Builder, node: Node, w: Window) -> bool:
    """A convolution of codes, of one or two axes, where input and weight have them."""
    x, weight, bias, *residual = node.args
    rank = len(w.sizes)
    if not _is_usable(b, node) or node.options["groups"] != 1 or rank > 2:
        return False
    rounded, found = b.rounded[x.place], whole(b, weight, False)
    images, count = x.shape[:2]
    is_narrow = count < LANES and not b.has(rounded.x, CHANNELS)
    row = _upwards(count, 4 if is_narrow else LANES)
    if found is None or not rounded.one or math.prod(w.kernel) * row > _DEEPEST:
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
    maps = _Maps(
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
    runs = [
        ((i * dilation[0] * wide + j * dilation[1]) * row, 0, row)
        for i in range(kernel[0])
        for j in range(kernel[1])
    ]
    if dilation[1] == 1:  # the taps of a row lie side by side
        runs = [(x, 0, kernel[1] * row) for x, _, _ in runs[:: kernel[1]]]
    layout = CHANNELS
    if is_narrow:
        layout = PLAIN if count == 1 else Layout("rows", 1)
    _add(
        b, node, x.place, found, maps, layout, count, bias,
        begins=begins, runs=runs, channels=count,
        out=b.result(node.result, CHANNELS), out_row=LANES,
        out_block=LANES * pixels(node.result.shape, 1),
        residual=b.spot(residual[0], CHANNELS) if residual else None,
    )  # fmt: skip
    return True


def _add(
    b: Builder, node: Node, place: int, weight: Whole, maps: _Maps, layout: Layout,
    width: int, bias: Any, *, begins: Any, runs: Any, channels: int, out: Spot,
    out_row: int, out_block: int, residual: Spot | None,
) -> None:  # fmt: skip
    rounded = b.rounded[place]
    codes = _codes(b, place, rounded, maps, layout, width)
    rows, count = len(begins), blocks(weight.outs)
    nr = 4 if rows <= _FEW_ROWS and count >= 4 else min(count, 2)
    groups = -(-count // nr)
    lanes = groups * nr * LANES
    depth = sum(length for _, _, length in runs)
    flops = 2 * rows * depth * weight.outs
    act, low, high = node.act
    scheme = _scheme(b, rounded)
    b.add(
        "quantized", b.shares(flops / 32), flops=flops, x=codes,
        x_scale=scheme["scale"], x_zero=scheme["zero"],
        weight=b.constant(weight.packed(nr, channels, maps.row)),
        scale=b.constant(weight.scales(lanes)), zero=b.constant(weight.zeros(lanes)),
        total=b.constant(weight.totals(lanes)),
        bias=biases(b, bias, 1, weight.outs, lanes), residual=residual, out=out,
        **{"from": b.table(begins)}, runs=b.table(runs), n_runs=len(runs), rows=rows,
        groups=groups, nr=nr, depth=depth, one=rounded.one, outs=weight.outs,
        out_row=out_row, out_block=out_block, act=ACTIVATIONS.index(act), low=low,
        high=high,
    )  # fmt: skip


def _upwards(n: int, step: int) -> int:
    return -(-n // step) * step
