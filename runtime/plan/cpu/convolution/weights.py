"""How weights and biases of products and convolutions are packed."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from burnish.kernels.elementwise import OUTER, coded, mode
from burnish.kernels.forms import even, paired
from burnish.kernels.records import RESULTS
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import CHANNELS, LANES, PLAIN
from burnish.plan.cpu.products import first_level
from burnish.plan.graph import Array, Constant, Value, constant

_NEAR = 256 << 10
"""Bytes of weights that a tile reads as fast as it multiplies, from cache."""

_FAR = 4
"""How much longer loads of more weights than that take."""

_MANY = 64
"""Places from which on weights are read often enough to be in cache."""


class Unpacked(NamedTuple):
    """A weight that a step of training changes, and how it is to be packed."""

    x: Spot
    groups: int
    outs: int
    ins: int
    taps: int
    wide: int
    depth: int
    group_step: int
    out_step: int
    in_step: int
    half: bool = False

    @property
    def panel(self) -> int:
        """Places of 4 bytes for the panel of `wide` outputs while it is packed."""
        ins = even(self.ins) if self.half else self.ins
        return ins * self.taps * self.wide


class Small(NamedTuple):
    """A quantized matrix, dequantized panel by panel as it is used."""

    codes: Spot
    scales: Spot
    zeros: Spot | None
    mode: int
    block: int
    outs: int
    ins: int
    wide: int

    @property
    def panel(self) -> int:
        """Numbers in the panel of `wide` outputs."""
        return self.ins * self.wide


def weights(
    b: Builder, weight: Constant | Value, groups: int, nr: int, depth: int
) -> Spot | Unpacked:
    """The place of a packed weight, or its packing in each run of a step."""
    if isinstance(weight, Constant):
        return b.constant(b.derived(packed, weight, groups, nr, depth, b.half))
    outs, ins = weight.shape[0] // groups, weight.shape[1]
    taps = math.prod(weight.shape[2:])
    return Unpacked(
        b.spot(weight), groups, outs, ins, taps, nr * LANES, depth,
        outs * ins * taps, ins * taps, taps, b.half,
    )  # fmt: skip


def turned(weight: Constant, groups: int) -> Constant:
    """A transposed convolution's weight, (group x in, out, ...), as a convolution's."""
    ins, outs = weight.shape[0] // groups, weight.shape[1]
    kernel = tuple(weight.shape[2:])

    def turn(a: Any) -> Any:
        parts = a.reshape(groups, ins, outs, *kernel).swapaxes(1, 2)
        return np.ascontiguousarray(parts).reshape(groups * outs, ins, *kernel)

    return weight.then(turn)


def turned_weights(
    b: Builder, weight: Constant | Value, groups: int, nr: int, depth: int
) -> Spot | Unpacked:
    """A convolution's weight for its gradient to the input: outputs are what go in.

    One that is frozen is packed in each run too, which takes a few percent of a step:
    packed once, it would be in memory three times.
    """
    if isinstance(weight, Constant) and weight.stored is None:
        return weights(b, turned(weight, groups), groups, nr, depth)
    ins, outs = weight.shape[0] // groups, weight.shape[1]
    taps = math.prod(weight.shape[2:])
    return Unpacked(
        b.spot(weight), groups, outs, ins, taps, nr * LANES, depth,
        ins * outs * taps, taps, outs * taps, b.half,
    )  # fmt: skip


def channel_weights(b: Builder, weight: Constant | Value) -> Spot:
    """A weight for each channel: (blocks of channels, tap, channel)."""
    count, taps = weight.shape[0], math.prod(weight.shape[1:])
    if isinstance(weight, Value):
        one = Unpacked(b.spot(weight), 1, count, 1, taps, LANES, 1, 0, taps, taps)
        return pack(b, one)
    return b.constant(b.derived(_arranged, weight))


def _arranged(a: Array) -> Array:
    taps = math.prod(a.shape[1:])
    a = np.pad(a.reshape(-1, taps), ((0, -len(a) % LANES), (0, 0)))
    return np.ascontiguousarray(a.reshape(-1, LANES, taps).transpose(0, 2, 1))


def scaled(
    b: Builder, weight: Spot, gate: Value, number: int, ins: int, wide: int
) -> Spot:
    """Where a pointwise convolution's packed weight is times a number for each input.

    number: the groups of `wide` outputs.
    """
    known = CHANNELS if b.has(gate, CHANNELS) else PLAIN  # of one place: both the same
    size = number * ins * wide
    out = b.new(4 * size)
    sizes, ways = (number, ins, wide), ((ins * wide, wide, 1), (0, 1, 0))
    lead = (0,) * (OUTER + 2 - len(sizes))
    read = [
        (spot, mode(way[-2:], ins, wide), 0, (*lead, *way))
        for spot, way in zip((weight, b.spot(gate, known)), ways, strict=True)
    ]
    code = coded([("mul", 0, 1, 0, 0.0, 0.0)], len(read))
    outer = [1] * (OUTER - 1) + [number]
    b.add_program(
        read, out, b.shares(4 * size),
        code=b.table(np.frombuffer(code, np.uint8), np.uint8), steps=1, operands=2,
        result=2, to=RESULTS["values"], rows=ins, width=wide,
        **{f"size{i}": n for i, n in enumerate(outer)},
    )  # fmt: skip
    return out


def biases(
    b: Builder, bias: Constant | Value | None, groups: int, outs: int, wide: int
) -> Spot:
    """The place of a bias with zeros after the outputs of every group."""
    if not isinstance(bias, Value):
        return b.constant(packed_bias(bias, groups, outs, wide))
    return pack(b, Unpacked(b.spot(bias), groups, outs, 1, 1, wide, 1, outs, 1, 0))


def pack(b: Builder, w: Unpacked) -> Spot:
    """The place of a weight that a record of its own packs in each run."""
    size = w.groups * -(-w.outs // w.wide) * w.panel
    out = b.new(4 * size)
    b.add("pack", b.shares(size), out=out, **w._asdict())
    return out


def packing(b: Builder, w: Unpacked | Small | None, shares: int) -> dict[str, Any]:
    """How a record packs a weight itself; None where it does not."""
    names = ("ins", "taps", "depth", "group_step", "out_step", "in_step")
    layout = {f"of_{name}": getattr(w, name, 0) for name in (*names, "mode", "block")}
    given: dict[str, Any] = {"scales": None, "zeros": None}
    if w is None:
        return {"unpacked": None, "space": None, "room": 0, **given, **layout}
    given["space"] = b.new(4 * shares * w.panel)
    if isinstance(w, Small):
        given |= {"unpacked": w.codes, "scales": w.scales, "zeros": w.zeros}
    else:
        given["unpacked"] = w.x
    return {"room": w.panel, **given, **layout}


def packed(w: Array, groups: int, nr: int, depth: int, half: bool) -> Array:
    """Weights in the order of their use: (nr blocks of outputs, block, tap, input).

    half: as pairs of bfloat16.
    """
    wide = nr * LANES
    outs, ins = w.shape[0] // groups, w.shape[1]
    w = w.reshape(groups, outs, ins, -1)
    short, odd = -outs % wide, ins % 2 if half else 0
    w = np.pad(w, ((0, 0), (0, short), (0, odd), (0, 0)))
    ins += odd
    w = w.reshape(-1, wide, ins, w.shape[-1])
    whole = ins // depth * depth
    parts = []
    for lo, hi, step in ((0, whole, depth), (whole, ins, ins - whole)):
        if lo < hi:
            part = w[:, :, lo:hi].reshape(len(w), wide, -1, step, w.shape[-1])
            parts.append(part.transpose(0, 2, 4, 3, 1).reshape(len(w), -1))
    made = np.concatenate(parts, axis=1)
    return paired(made, wide) if half else np.ascontiguousarray(made, np.float32)


def packed_bias(bias: Constant | None, groups: int, outs: int, wide: int) -> Constant:
    """A bias with zeros after the outputs of every group, which has `wide` of them."""
    if bias is None:
        return constant(np.zeros(groups * wide, np.float32))
    short = wide - outs
    return bias.then(
        lambda a: np.pad(a.reshape(groups, outs), ((0, 0), (0, short))).reshape(-1)
    )


def fitting(
    rows: list[int], count: int, places: int, sums: int, *, exact: bool = True
) -> int:
    """How many blocks of channels a tile has, of `count`, for so many places.

    rows: the most places of a tile, by its blocks. sums: products of a result. exact:
    tiles fill `count`.
    """
    # Loads of weights and of numbers, as parts of a product's time. In vectors of 16
    # numbers both delay products, above all where a core's other thread is busy.
    is_wide = rows[4] > 1 and places >= _MANY
    of_weight, of_number = (0.3, 0.3) if is_wide else (0.6, 0.125)
    # Eight vectors are under way at once: four blocks where they have 8 numbers.
    least = 8 if rows[4] > 1 else 4

    def cost(nr: int) -> float:
        """Products and loads, in the time of a product."""
        tiles = -(-places // rows[nr])
        height = places / tiles
        times = _FAR if is_wide and 4 * LANES * nr * sums > _NEAR else 1
        loads = times * of_weight * nr + of_number * height
        return -(-count // nr) * tiles * (max(nr * height, least) + loads)

    # With one load of 16 numbers at a time, those of 4 blocks delay 6 places' products.
    most = 3 if is_wide and not first_level.is_wide() else 4
    usable = [
        nr for nr in range(1, most + 1) if rows[nr] and not (exact and count % nr)
    ]
    return min(usable, key=cost)
