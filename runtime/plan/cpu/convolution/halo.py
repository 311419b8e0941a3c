"""Zero padding around small maps, where it makes tiles fewer.

Pixels of a tile share their taps. At the edges of a map some taps are outside, so that
a map of 7 x 7 has nine kinds of pixels, and small tiles read the same weights for each
of them. With zeros around it all are of one kind; the products with zeros are cheaper.
"""

from __future__ import annotations

import math

import numpy as np

from burnish.kernels.forms import even
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.convolution.geometry import Tiles, Window, tiled
from burnish.plan.cpu.convolution.grouped import Groups
from burnish.plan.cpu.layout import LANES, blocks, strides
from burnish.plan.cpu.moves.slabs import slabs

_GAIN = 1.02
"""The least gain of a border: the map must be copied into it first."""

_LEAST = ((512 << 10, 5 / 7), (64 << 10, 4 / 7), (0, 2 / 7))
"""Bytes of a group's weights, and of how large a part of a tile the products take as
long as these weights need to come: from the first-level cache, or from further away."""


def tiled_maps(
    b: Builder, w: Window, batch: int, source: Spot, step: int, g: Groups, nr: int
) -> tuple[Spot, Tiles, int]:
    """Where the maps of a convolution are, its tiles, and the pixels of a channel.

    step: floats from a pixel to the next one. nr: blocks of channels in a tile.
    """
    ins = even(g.ins) if b.half else g.ins
    lanes, tail = (LANES, ins % LANES or LANES) if step == LANES else (step, step)
    rows, places = b.rows[nr], batch * math.prod(w.sizes)
    tiles = tiled(batch, w, rows, step, lanes, tail, (LANES,))
    border = _bordered(w)
    if step != LANES or type(w) is not Window or border.sizes == w.sizes:
        return source, tiles, places
    other = tiled(batch, border, rows, step, lanes, tail, (LANES,))
    weight = 4 * g.ins * math.prod(w.kernel) * nr * LANES
    least = rows * next(part for size, part in _LEAST if weight > size)
    if _time(tiles, least) <= _GAIN * _time(other, least):
        return source, tiles, places
    source = _surrounded(b, source, blocks(g.ins * g.number), batch, w, border)
    return source, other, batch * math.prod(border.sizes)


def _bordered(w: Window) -> Window:
    """The same window over maps with as many zeros around them as it reads."""
    sizes = tuple(
        max(before + size, (out - 1) * stride + (kernel - 1) * dilation + 1)
        for size, out, kernel, stride, dilation, before in zip(*w, strict=True)
    )
    return w._replace(sizes=sizes, before=(0,) * len(sizes))


def _time(tiles: Tiles, least: float) -> float:
    """About how long tiles take: their pixels times what their taps read.

    A tile of fewer than `least` pixels takes as long as weights need to come.
    """
    lengths = np.concatenate([[0], np.cumsum(tiles.runs[:, 2])])
    first, count = tiles.tiles[:, 3], tiles.tiles[:, 4]
    taps = lengths[first + count] - lengths[first]
    return float((np.maximum(tiles.tiles[:, 1], least) * taps).sum())


def _surrounded(
    b: Builder, source: Spot, count: int, batch: int, w: Window, border: Window
) -> Spot:
    """Maps of `count` blocks of channels with a border of zeros around each."""
    lanes = LANES // 2 if b.half else LANES  # places of 4 bytes
    shape = (count, batch, *w.sizes, lanes)
    each = zip(w.before, w.sizes, border.sizes, strict=True)
    around = [(before, whole - size - before) for before, size, whole in each]
    pads = [(0, 0), (0, 0), *around, (0, 0)]
    out = b.new(4 * count * batch * math.prod(border.sizes) * lanes)
    slabs(b, source, strides(shape), shape, out, pads, np.zeros(lanes))
    return out
