"""Convolutions with few output channels: vectorized along the input channels.

In a block of 16 outputs, as other convolutions have them, most would be zeros.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burnish.kernels.records import ACTIVATIONS
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.convolution.geometry import Tiles, Window, tiled
from burnish.plan.cpu.convolution.weights import biases
from burnish.plan.cpu.layout import CHANNELS, LANES, PLAIN, Layout, blocks, pixels
from burnish.plan.graph import Array, Constant, Node, Value

_SUM = 5
"""Products of vectors that take as long as to add a vector up."""

_CUT = 6
"""As long takes what blocks write behind the last output of a row, and is cut off."""

_GAIN = 1.25
"""Least gain: products of vectors come from memory more often than those of blocks."""


def is_narrow(b: Builder, weight: Any, bias: Any, layout: Layout) -> bool:
    """Whether a convolution, weight (out, in, *kernel), takes fewer products so.

    A product's weight is (out, in).
    """
    if b.half or not isinstance(weight, Constant) or isinstance(bias, Value):
        return False
    outs, ins, *kernel = weight.shape
    taps = math.prod(kernel)
    if layout == CHANNELS or not kernel:
        vectors = taps * blocks(ins)
    else:  # runs are rows of a window
        vectors = taps // kernel[-1] * blocks(kernel[-1] * ins)
    whole = (taps * ins + (0 if kernel else _CUT)) * blocks(outs)
    return bool(outs * (vectors + _SUM) * _GAIN < whole)


def narrow(
    b: Builder, node: Node, w: Window, x: Value, source: Spot, layout: Layout,
    weight: Constant, bias: Constant | None, *residual: Any,
) -> None:  # fmt: skip
    """source: where x is, in this layout. The result is plain."""
    (outs, ins), y = weight.shape[:2], node.result
    places = pixels(y.shape, 1) // y.shape[0]
    is_blocked = layout == CHANNELS
    depth = LANES if is_blocked else ins
    tail = ins % LANES or LANES if is_blocked else ins
    tiles = tiled(x.shape[0], w, LANES, depth, depth, tail)
    to = tiles.to // places * outs * places + tiles.to % places
    _add(b, node, tiles, to, x, source, depth, weight, bias, places, *residual)


def narrow_rows(
    b: Builder, node: Node, x: Value, source: Spot, layout: Layout,
    weight: Constant, bias: Constant | None, *residual: Any,
) -> None:  # fmt: skip
    """x (..., ins) times a weight (outs, ins); source: where x is, in this layout."""
    outs, ins = weight.shape
    count = x.size // ins
    depth = ins if layout == PLAIN else LANES
    tail = ins if layout == PLAIN else ins % LANES or LANES
    w = Window((count,), (count,), (1,), (1,), (1,), (0,))
    tiles = tiled(1, w, LANES, depth, depth, tail)
    to = tiles.to * outs
    _add(b, node, tiles, to, x, source, depth, weight, bias, 1, *residual)


def _add(
    b: Builder, node: Node, tiles: Tiles, to: Array, x: Value, source: Spot, depth: int,
    weight: Constant, bias: Constant | None, out_step: int, *residual: Any,
) -> None:  # fmt: skip
    """to: where the first output of each place goes, the next `out_step` behind it."""
    outs, ins, *kernel = weight.shape
    y, taps = node.result, math.prod(kernel)
    act, low, high = node.act
    flops = 2 * y.size * taps * ins
    b.add(
        "narrow", b.shares(flops / 8), flops=flops, x=source,
        weight=b.constant(b.derived(_packed, weight, depth)),
        bias=biases(b, bias, 1, outs, outs),
        residual=b.spot(residual[0]) if residual else None, out=b.result(y, PLAIN),
        tiles=b.table(tiles.tiles), runs=b.table(tiles.runs), to=b.table(to),
        n_tiles=len(tiles.tiles), outs=outs, row=ins * taps, blocks=-(-ins // depth),
        x_step=LANES * (x.size // ins), weight_step=depth * taps, out_step=out_step,
        act=ACTIVATIONS.index(act), low=low, high=high,
        **{"from": b.table(tiles.source)},
    )  # fmt: skip


def _packed(a: Array, depth: int) -> Array:
    """(out, in, *kernel) as (out, block of `depth` inputs, tap, input)."""
    outs, ins = a.shape[:2]
    a = a.reshape(outs, ins, -1).swapaxes(1, 2)
    cuts = range(depth, ins, depth)
    parts = [part.reshape(outs, -1) for part in np.split(a, cuts, axis=2)]
    return np.ascontiguousarray(np.concatenate(parts, axis=1), np.float32)
