"""Convolutions with few input channels (first layers), which read plain NCHW maps.

Blocks of 16 channels would be mostly zeros. Maps with the channels last have them in
one run for each row of a window, but are a copy, and runs of a few numbers are slow.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from burnish.kernels.records import ACTIVATIONS
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.convolution.geometry import Window
from burnish.plan.cpu.convolution.weights import biases, weights
from burnish.plan.cpu.layout import (
    CHANNELS,
    LANES,
    Layout,
    blocks,
    pixels,
    places,
)
from burnish.plan.graph import Array, Constant, Node, Value

_ROWS = Layout("rows", 1)

_ROOM, _MORE = 32 << 10, 384 << 10
"""Bytes of a window: it stays in the first-level cache. More where weights, which each
window reads, come from further away."""

_COLUMNS = 8
"""The fewest results in a row: tiles of fewer are slower than copies. Of small tiles,
as vectors of 8 have, all but one."""

_FAR = 256 << 10
"""Bytes of weights that do."""

_LOAD = 0.3
"""Of a product's time, what a load of a vector of weights or of a number delays it."""

_TILE = 80
"""Products that take as long as what each tile does besides."""


class Unit(NamedTuple):
    """How many rows and columns of results read one window, and its sizes: rows, and
    places in a row of each phase of the stride."""

    rows: int
    columns: int
    window_rows: int
    phases: int
    pitch: int

    def floats(self, channels: int) -> int:
        return channels * self.window_rows * self.phases * self.pitch


def is_of_planes(b: Builder, x: Value, w: Window, bias: Any) -> bool:
    """Whether a dense convolution reads few channels that are not in blocks.

    Signals of one channel are runs as they are.
    """
    return (
        x.shape[1] < LANES
        and type(w) is Window
        and (len(w.sizes) == 2 or (len(w.sizes) == 1 < x.shape[1]))
        and w.out[-1] >= min(_COLUMNS, b.rows[1] - 1)
        and min(w.out) > 0
        and not b.has(x, CHANNELS)
        and not b.half
        and "planes" not in b.off
        and not isinstance(bias, Value)
    )


def planes(
    b: Builder, node: Node, w: Window, x: Value, weight: Constant,
    bias: Constant | None,
) -> None:  # fmt: skip
    """weight: (outs, ins, *kernel)."""
    (images, ins), outs, y = x.shape[:2], weight.shape[0], node.result
    w = _of_two_axes(w)
    taps = math.prod(w.kernel)
    nr = _blocks_of_tile(b.rows, blocks(outs), w.out[1], ins * taps)
    groups = blocks(outs) // nr
    flops = 2 * y.size * ins * taps
    shares = b.shares(flops / 8)
    room = _ROOM if 4 * weight.size < _FAR else _MORE
    unit = _unit(w, ins, room // 4, max(1, 2 * shares // images) if shares > 1 else 1)
    source, steps = _strided(b, x)
    act, low, high = node.act
    packed = weights(b, weight, 1, nr, ins)
    assert isinstance(packed, Spot)
    b.add(
        "conv_planes", shares, flops=flops, x=source, weight=packed,
        bias=biases(b, bias, 1, outs, groups * nr * LANES),
        places=b.table(_places(w, ins, unit)), out=b.result(y, CHANNELS),
        space=b.new(4 * shares * unit.floats(ins)), room=unit.floats(ins),
        images=images, height=w.sizes[0], width=w.sizes[1], channels=ins,
        x_image=steps[0], x_channel=steps[1], x_row=steps[2], x_column=steps[3],
        out_height=w.out[0], out_width=w.out[1], stride0=w.stride[0],
        stride1=w.stride[1], before0=w.before[0], before1=w.before[1],
        span0=_span(w, 0), span1=_span(w, 1), phases=unit.phases, pitch=unit.pitch,
        window_rows=unit.window_rows, unit_rows=unit.rows, unit_columns=unit.columns,
        sums=ins * taps, groups=groups, nr=nr, out_step=LANES * pixels(y.shape, 1),
        act=ACTIVATIONS.index(act), low=low, high=high,
    )  # fmt: skip


def _of_two_axes(w: Window) -> Window:
    """A window over signals as one over maps of one row."""
    if len(w.sizes) == 2:
        return w
    size, out, kernel, stride, dilation, before = w
    return Window(
        (1, *size), (1, *out), (1, *kernel), (1, *stride), (1, *dilation), (0, *before)
    )


def _strided(b: Builder, x: Value) -> tuple[Spot, tuple[int, ...]]:
    """Where x is, and its strides along four axes; of signals the third is 0."""
    if b.has(x, _ROWS):
        spot, steps = b.spot(x, _ROWS), places(x.shape, _ROWS, 1, None)[0]
    else:
        spot, steps = b.strided(x)
    if len(steps) == 3:
        steps = *steps[:2], 0, steps[2]
    return spot, steps


def _blocks_of_tile(rows: list[int], count: int, columns: int, sums: int) -> int:
    """How many blocks of channels out, of `count`, a tile has.

    rows: the most results of a tile, by its blocks. A row of results is cut evenly.
    sums: products of a result. In 16 registers a tile of more blocks has no place for
    weights, which are then loaded for each result.
    """
    if rows[4] <= 1:
        return 1

    def cost(nr: int) -> float:
        """Products of blocks, at least the eight that are under way, and loads."""
        tiles = -(-columns // rows[nr])
        height = columns / tiles
        each = sums * (max(nr * height, 8) + _LOAD * (nr + height)) + _TILE
        return count // nr * tiles * each

    return min((nr for nr in (1, 2, 3, 4) if rows[nr] and count % nr == 0), key=cost)


def _span(w: Window, axis: int) -> int:
    return w.dilation[axis] * (w.kernel[axis] - 1) + 1


def _unit(w: Window, channels: int, room: int, fewest: int) -> Unit:
    """The largest part of an image whose window has at most `room` numbers.

    fewest: units of an image that threads need.
    """
    (down, across), stride = w.out, w.stride[1]

    def unit(rows: int, columns: int) -> Unit:
        return Unit(
            rows,
            columns,
            (rows - 1) * w.stride[0] + _span(w, 0),
            min(stride, _span(w, 1)),
            columns + (_span(w, 1) - 1) // stride,
        )

    columns = across
    while columns > LANES and unit(1, columns).floats(channels) > room:
        columns = -(-columns // 2)
    rows = max(1, down // fewest)
    while rows > 1 and unit(rows, columns).floats(channels) > room:
        rows -= 1
    return unit(-(-down // -(-down // rows)), columns)


def _places(w: Window, channels: int, unit: Unit) -> Array:
    """Where in a window the first result reads, by tap and channel."""
    row, column = np.indices(w.kernel).reshape(2, -1, 1)
    row, column = row * w.dilation[0], column * w.dilation[1]
    line = np.arange(channels) * unit.window_rows + row
    phase, place = column % w.stride[1], column // w.stride[1]
    return (line * unit.phases + phase) * unit.pitch + place
