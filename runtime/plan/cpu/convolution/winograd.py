"""Convolutions of 3 x 3 taps by Winograd's algorithm F(2 x 2, 3 x 3)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burnish.kernels.records import ACTIVATIONS
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.convolution.geometry import Adjoint, Window
from burnish.plan.cpu.convolution.weights import fitting, packed_bias
from burnish.plan.cpu.layout import CHANNELS, LANES, blocks, pixels
from burnish.plan.graph import Array, Constant, Node, Value

_CACHE = 512 << 10
"""Bytes of a chunk's moved inputs: they stay in the second-level cache."""

_TILES = 16, 64
"""The fewest tiles of a chunk, for which weights are read once, and the most."""

_PLACES = 16
_GAP = 16

_FILTERS = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])


def is_faster(b: Builder, node: Node, w: Window, weight: Constant) -> bool:
    """Whether it takes fewer products than a direct sum, with all that it moves.

    The costs are cycles for each pair of channels: one for 16 products, and what it
    takes to read weights, and to move the input and the results of a tile.
    """
    outs, ins = weight.shape[:2]
    plain = w.kernel == (3, 3) and w.stride == w.dilation == (1, 1)
    if not plain or isinstance(w, Adjoint) or "winograd" in b.off or not b.may_fault:
        return False
    if node.options["groups"] > 1 or min(ins, outs) < 2 * LANES:
        return False
    images = node.args[0].shape[0]
    places = images * math.prod(w.out)
    tiles = images * math.prod(-(-n // 2) for n in w.out)
    direct = 9 * places / LANES + 3.5
    return tiles * (1 + 4 / ins + 4 / outs) + 6 < direct


def winograd(
    b: Builder, node: Node, w: Window, x: Value, weight: Constant, bias: Any,
    *residual: Any,
) -> None:  # fmt: skip
    outs, ins = weight.shape[:2]
    y = node.result
    rows, columns = (-(-n // 2) for n in w.out)
    tiles = x.shape[0] * rows * columns
    fewest, most = _TILES
    chunk = min(tiles, most, max(fewest, _CACHE // (4 * _PLACES * ins)))
    chunks = -(-tiles // chunk)
    nr = fitting(b.rows, blocks(outs), chunk)
    groups = blocks(outs) // nr
    flops = 2 * 9 * ins * y.size
    shares = b.shares(flops / 16)
    splits = min(groups, -(-shares // chunks)) if shares > 1 else 1
    room = _PLACES * ((blocks(ins) + nr) * LANES * chunk + 2 * _GAP)
    act, low, high = node.act
    b.add(
        "winograd", min(shares, chunks * splits), flops=flops, x=b.spot(x, CHANNELS),
        weight=b.constant(b.derived(_turned, weight, nr)),
        bias=b.constant(packed_bias(bias, 1, outs, groups * nr * LANES)),
        residual=b.spot(residual[0], CHANNELS) if residual else None,
        out=b.result(y, CHANNELS), space=b.new(4 * room * shares), fault=b.fault(),
        images=x.shape[0], height=w.sizes[0], width=w.sizes[1], out_height=w.out[0],
        out_width=w.out[1], before0=w.before[0], before1=w.before[1], rows=rows,
        columns=columns, chunk=chunk, splits=splits, groups=groups, nr=nr,
        blocks=blocks(ins), ins=ins, x_step=LANES * pixels(x.shape, 1),
        out_step=LANES * pixels(y.shape, 1), room=room, act=ACTIVATIONS.index(act),
        low=low, high=high,
    )  # fmt: skip


def _turned(w: Array, nr: int) -> Array:
    """G g G' of every pair of channels: (nr blocks of outputs, 16, input, output)."""
    wide = nr * LANES
    moved = _FILTERS @ w.astype(np.float64) @ _FILTERS.T
    outs, ins = w.shape[:2]
    moved = np.pad(moved, ((0, -outs % wide), (0, 0), (0, 0), (0, 0)))
    moved = moved.reshape(-1, wide, ins, _PLACES).transpose(0, 3, 2, 1)
    return np.ascontiguousarray(moved, np.float32)
