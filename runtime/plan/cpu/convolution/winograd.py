"""Convolutions of 3 x 3 taps by Winograd's algorithm F(2 x 2, 3 x 3)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from burnish.kernels.records import ACTIVATIONS
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.convolution.geometry import Adjoint, Window
from burnish.plan.cpu.convolution.weights import biases, fitting
from burnish.plan.cpu.layout import CHANNELS, LANES, blocks, pixels
from burnish.plan.graph import Array, Constant, Node, Value

_CACHE = 512 << 10
"""Bytes of a chunk's moved inputs: they stay in the second-level cache."""

_TILES = 16, 64
"""The fewest tiles of a chunk, for which weights are read once, and the most."""

_PLACES = 16
_GAP = 16

_PACKED = 18
"""The cycles for a pair of channels where its weight is packed in each run."""

UNIT, WIDE = 64, 32
"""Channels in and out that a share of a weight's gradient has at most."""

_FILTERS = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])


class Taps(NamedTuple):
    """A weight of 3 x 3 taps, (outs, ins, 3, 3); a Value is packed in each run.

    is_turned: it is (ins, outs, 3, 3), that of the convolution whose adjoint this is.
    """

    weight: Constant | Value
    is_turned: bool = False

    @property
    def outs(self) -> int:
        return self.weight.shape[self.is_turned]

    @property
    def ins(self) -> int:
        return self.weight.shape[not self.is_turned]

    def packed(self, b: Builder, nr: int) -> Spot:
        """The place of G g G' of every pair of channels."""
        if isinstance(self.weight, Constant):
            return b.constant(b.derived(_turned, self.weight, nr))
        wide = nr * LANES
        out = b.new(4 * _PLACES * self.ins * -(-self.outs // wide) * wide)
        steps = 9 * self.ins, 9
        if self.is_turned:
            steps = 9, 9 * self.outs
        b.add(
            "winograd_pack", b.shares(8 * self.ins * self.outs), x=b.spot(self.weight),
            out=out, outs=self.outs, ins=self.ins, wide=wide, out_step=steps[0],
            in_step=steps[1], is_turned=self.is_turned,
        )  # fmt: skip
        return out


def is_faster(b: Builder, node: Node, w: Window, taps: Taps) -> bool:
    """Whether it takes fewer products than a direct sum, with all that it moves.

    The gradient of an input rounds no more than PyTorch's; a result does, so that it
    is "winograd" by name and asked for. A frozen weight's convolution notes what is not
    finite, so that the call is made once more; where a weight is trained, NaN and
    infinity reach its gradient anyhow.
    """
    is_frozen = isinstance(taps.weight, Constant)
    if not _fits(b, node, w, taps.ins, taps.outs):
        return False
    if is_frozen and (isinstance(w, Adjoint) or not b.may_fault):
        return False
    images = node.args[0].shape[0]
    direct = 9 * images * math.prod(w.out) / LANES + 3.5
    moved = 6 if is_frozen else _PACKED
    return _tiles(images, w) * (1 + 4 / taps.ins + 4 / taps.outs) + moved < direct


def is_faster_to_weight(b: Builder, node: Node, w: Window, ins: int, outs: int) -> bool:
    """The same for the gradient of a weight; node.args[0] is the input."""
    if not _fits(b, node, w, ins, outs):
        return False
    images = node.args[0].shape[0]
    direct = 9 * images * math.prod(w.out) / LANES + 3
    return 1.15 * _tiles(images, w) + 8 < direct


def _fits(b: Builder, node: Node, w: Window, ins: int, outs: int) -> bool:
    is_plain = w.kernel == (3, 3) and w.stride == w.dilation == (1, 1)
    is_dense = node.options["groups"] == 1 and min(ins, outs) >= 2 * LANES
    is_gradient = node.name.endswith("_gradient")
    kernel = "winograd_gradients" if is_gradient else "winograd"
    return is_plain and is_dense and not b.half and kernel not in b.off


def _tiles(images: int, w: Window) -> int:
    return images * math.prod(-(-n // 2) for n in w.out)


def winograd(
    b: Builder, node: Node, w: Window, x: Value, taps: Taps, bias: Any,
    *residual: Any,
) -> None:  # fmt: skip
    ins, outs, y = taps.ins, taps.outs, node.result
    before = [2 - n for n in w.before] if isinstance(w, Adjoint) else w.before
    rows, columns = (-(-n // 2) for n in w.out)
    tiles = _tiles(x.shape[0], w)
    fewest, most = _TILES
    chunk = min(tiles, most, max(fewest, _CACHE // (4 * _PLACES * ins)))
    chunks = -(-tiles // chunk)
    nr = fitting(b.rows, blocks(outs), chunk, _PLACES * ins)
    groups = blocks(outs) // nr
    flops = 2 * 9 * ins * y.size
    shares = b.shares(flops / 16)
    splits = min(groups, -(-shares // chunks)) if shares > 1 else 1
    room = _PLACES * ((blocks(ins) + nr) * LANES * chunk + 2 * _GAP)
    act, low, high = node.act
    b.add(
        "winograd", min(shares, chunks * splits), flops=flops, x=b.spot(x, CHANNELS),
        weight=taps.packed(b, nr), bias=biases(b, bias, 1, outs, groups * nr * LANES),
        residual=b.spot(residual[0], CHANNELS) if residual else None,
        out=b.result(y, CHANNELS), space=b.new(4 * room * shares),
        fault=b.fault() if b.may_fault else None,
        images=x.shape[0], height=w.sizes[0], width=w.sizes[1], out_height=w.out[0],
        out_width=w.out[1], before0=before[0], before1=before[1], rows=rows,
        columns=columns, chunk=chunk, splits=splits, groups=groups, nr=nr,
        blocks=blocks(ins), ins=ins, x_step=LANES * pixels(x.shape, 1),
        out_step=LANES * pixels(y.shape, 1), room=room, act=ACTIVATIONS.index(act),
        low=low, high=high,
    )  # fmt: skip


def winograd_weight(b: Builder, node: Node, w: Window, x: Value, g: Value) -> None:
    """The gradient of a weight, of the input and the gradient of the result."""
    ins, outs = x.shape[1], g.shape[1]
    rows, columns = (-(-n // 2) for n in w.out)
    chunk = min(_tiles(x.shape[0], w), _TILES[1])
    flops = 2 * 9 * ins * g.size
    units = -(-outs // WIDE) * -(-ins // UNIT)
    shares = b.shares(flops / 16, most=units)
    room = _PLACES * (UNIT * WIDE + (UNIT + WIDE) * chunk + 2 * _GAP)
    b.add(
        "winograd_weight", shares, flops=flops, x=b.spot(x, CHANNELS),
        g=b.spot(g, CHANNELS), out=b.result(node.result),
        space=b.new(4 * room * shares),
        images=x.shape[0], height=w.sizes[0], width=w.sizes[1], out_height=w.out[0],
        out_width=w.out[1], before0=w.before[0], before1=w.before[1], rows=rows,
        columns=columns, chunk=chunk, ins=ins, outs=outs,
        x_block=LANES * pixels(x.shape, 1), g_block=LANES * pixels(g.shape, 1),
        room=room,
    )  # fmt: skip


def _turned(w: Array, nr: int) -> Array:
    """G g G' of every pair of channels: (nr blocks of outputs, 16, input, output)."""
    wide = nr * LANES
    moved = _FILTERS @ w.astype(np.float64) @ _FILTERS.T
    outs, ins = w.shape[:2]
    moved = np.pad(moved, ((0, -outs % wide), (0, 0), (0, 0), (0, 0)))
    moved = moved.reshape(-1, wide, ins, _PLACES).transpose(0, 3, 2, 1)
    return np.ascontiguousarray(moved, np.float32)
