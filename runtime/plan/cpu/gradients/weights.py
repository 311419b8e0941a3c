"""Gradients of convolutions to their weights."""

from __future__ import annotations

import math
from typing import Any

from burnish.ops._kernels.window import each, pairs
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.convolution.conv import maps_layout
from burnish.plan.cpu.convolution.diagonal import from_diagonal, merged_for_training
from burnish.plan.cpu.convolution.geometry import Window
from burnish.plan.cpu.convolution.grouped import Groups
from burnish.plan.cpu.convolution.runs import Runs, runs_of
from burnish.plan.cpu.convolution.winograd import (
    UNIT,
    WIDE,
    is_faster_to_weight,
    winograd_weight,
)
from burnish.plan.cpu.layout import CHANNELS, LANES, blocks, pixels, strides
from burnish.plan.cpu.moves.slabs import slabs
from burnish.plan.cpu.table import check, lower, need
from burnish.plan.graph import Node, Value

_INS = 4
"""Channels in that a kernel takes together: fewer take as long."""


@lower("conv_weight_gradient")
def to_weight(b: Builder, node: Node) -> None:
    x, g = map(b.as_value, node.args[:2])
    need(isinstance(x, Value) and isinstance(g, Value), "it is of parameters alone")
    check(node, x, g)
    options, groups = node.options, node.options["groups"]
    kernel = tuple(options["kernel"])
    rank = len(kernel)
    stride = each(options["stride"], rank, "stride")
    dilation = each(options["dilation"], rank, "dilation")
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    pads = pairs(options["padding"], x.shape[2:], spans, stride, "padding")
    before = tuple(pad[0] for pad in pads)
    w = Window(x.shape[2:], g.shape[2:], kernel, stride, dilation, before)
    if is_faster_to_weight(b, node, w, x.shape[1], g.shape[1]):
        winograd_weight(b, node, w, x, g)
        return
    if groups == 1 and _is_faster_by_rows(b, w, x):
        _by_rows(b, node, w, x, g)
        return
    is_channelwise = 1 < groups == x.shape[1] == g.shape[1]
    ins, outs = x.shape[1] // groups, g.shape[1] // groups
    narrow = Groups(groups, ins, outs)
    runs, taps = runs_of(x.shape[0], w), math.prod(kernel)
    x_block, g_block = (LANES * pixels(value.shape, 1) for value in (x, g))
    given = {
        "x": b.spot(x, CHANNELS),
        "g": b.spot(g, CHANNELS),
        "x_by": runs.x_by,
        "g_by": runs.g_by,
        "x_block": x_block,
        "g_block": g_block,
    }
    if not is_channelwise:
        wide = narrow if narrow.are_blocks else merged_for_training(narrow)
        ins, outs = wide.ins, wide.outs
        dense = 4 * wide.number * ins * outs * taps
        out = b.result(node.result) if wide == narrow else b.new(dense)
        for i in range(wide.number):
            given["x"] = b.spot(x, CHANNELS).beyond(i * ins // LANES * x_block)
            given["g"] = b.spot(g, CHANNELS).beyond(i * outs // LANES * g_block)
            of_group = out.beyond(i * outs * ins * taps)
            weight_sums(b, runs, taps, ins, outs, pixels(g.shape, 1), of_group, **given)
        if wide != narrow:
            from_diagonal(b, out, groups, wide, node.result)
        return
    flops = 2 * g.size * taps
    shares = b.shares(flops / 2, most=blocks(x.shape[1]))
    room = taps * LANES
    b.add(
        "window_weight", shares, flops=flops, channels=x.shape[1], taps=taps, room=room,
        runs=b.table(runs.runs), starts=b.table(runs.starts), chunks=runs.chunks,
        space=b.new(4 * shares * room), out=b.result(node.result), **given,
    )  # fmt: skip


def _is_faster_by_rows(b: Builder, w: Window, x: Value) -> bool:
    """Whether a few channels' taps along the last axis fill the kernel's tiles better.

    They are next to each other where the channels are last.
    """
    ins, taps = x.shape[1], w.kernel[-1]
    is_dense = w.dilation[-1] == 1 and maps_layout(b, x) != CHANNELS
    return is_dense and taps > 1 and _tiles(taps * ins) <= taps * _tiles(ins)


def _tiles(ins: int) -> int:
    return -(-ins // _INS)


def _by_rows(b: Builder, node: Node, w: Window, x: Value, g: Value) -> None:
    """Taps along the last axis and channels are the channels of a window without them.

    That axis has its border of zeros in memory.
    """
    (count, ins), taps, layout = x.shape[:2], w.kernel[-1], maps_layout(b, x)
    outs, others = g.shape[1], math.prod(w.kernel[:-1])
    shape = count, *w.sizes, ins
    reach = (w.out[-1] - 1) * w.stride[-1] + taps
    after = max(0, reach - w.before[-1] - w.sizes[-1])
    sizes = (*w.sizes[:-1], w.before[-1] + w.sizes[-1] + after)
    rows = b.new(4 * (count * math.prod(sizes) * ins + LANES))  # a tile reads beyond it
    pads = [*[(0, 0)] * (len(shape) - 2), (w.before[-1], after), (0, 0)]
    slabs(b, b.spot(x, layout), strides(shape), shape, rows, pads, 0)
    whole = Window(
        sizes, w.out, (*w.kernel[:-1], 1), w.stride, w.dilation, (*w.before[:-1], 0)
    )
    wide = taps * ins
    sums = b.new(4 * outs * wide * others)
    runs = runs_of(count, whole, ins)
    weight_sums(
        b, runs, others, wide, outs, pixels(g.shape, 1), sums, x=rows,
        g=b.spot(g, CHANNELS), x_by=runs.x_by, g_by=runs.g_by, x_block=LANES,
        g_block=LANES * pixels(g.shape, 1),
    )  # fmt: skip
    order = (
        outs,
        ins,
        others,
        taps,
    )  # of the weight; the sums are (out, tap, in, other)
    steps = (wide * others, others, 1, ins * others)
    b.copy(order, sums, steps, b.result(node.result), strides(order))


def weight_sums(
    b: Builder, runs: Runs, taps: int, ins: int, outs: int, places: int, out: Spot,
    **given: Any,
) -> None:  # fmt: skip
    """The gradient of a weight that goes from all channels in to all channels out."""
    flops = 2 * places * taps * ins * outs
    units = -(-outs // WIDE) * -(-ins // UNIT)
    shares = b.shares(flops / 8, most=units)
    room = UNIT * taps * WIDE
    b.add(
        "conv_weight", shares, flops=flops, ins=ins, outs=outs, taps=taps, room=room,
        runs=b.table(runs.runs), starts=b.table(runs.starts), chunks=runs.chunks,
        space=b.new(4 * shares * room), out=out, **given,
    )  # fmt: skip
