"""Lower selection, resizing, rolling and padding along axes."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np

from burnish.ops.arrays import padding
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import LANES, PLAIN, Layout, blocks, strides
from burnish.plan.cpu.moves.slabs import at, slabs
from burnish.plan.cpu.table import LOWERED, check, lower, need
from burnish.plan.graph import Constant, Node, Value


@lower("pad_repeated")
def pad_repeated(b: Builder, node: Node) -> None:
    x = node.args[0]
    axis = node.options["axis"] % len(x.shape)
    taken(b, node, axis, repeated(node.options["runs"], x.shape[axis]), None)


def repeated(runs: Any, size: int) -> Any:
    """The place of an axis of `size` that each padded place repeats."""
    return padding.pad_repeated.value(np.arange(size), runs=runs, axis=0)


@lower("resample")
def resample(b: Builder, node: Node) -> None:
    x, index, weight = node.args
    known = isinstance(index, Constant) and isinstance(weight, Constant)
    need(known, "its weights are not known before")
    taken(b, node, node.options["axis"] % len(x.shape), index.make(), weight)


def taken(
    b: Builder, node: Node, axis: int, index: Any, weight: Any, plain: bool = False
) -> None:
    """Places along an axis as sums of those of x that index and weight name.

    index (places, taps); weight a constant of that shape, or None: one tap. plain: x is
    read in the order of its axes.
    """
    x, y = node.args[0], node.result
    need(isinstance(x, Value), "its input is a parameter")
    check(node, x)
    channels = b.blocked_axis(x)
    if plain or channels is None or channels == axis:
        layout = PLAIN
        outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    else:
        layout = Layout("blocked", channels)
        others = [*x.shape[:channels], *x.shape[channels + 1 :]]
        place = axis - (channels < axis)
        outer = blocks(x.shape[channels]) * math.prod(others[:place])
        inner = LANES * math.prod(others[place + 1 :])
    source, out = b.spot(x, layout), b.result(y, layout)
    places = len(index)
    if weight is not None:
        weight = b.constant(weight.then(lambda a: np.ascontiguousarray(a, np.float32)))
    b.add(
        "resample", b.shares(4 * y.size), x=source, index=b.table(index), weight=weight,
        out=out, outer=outer, size=x.shape[axis], places=places, inner=inner,
        taps=index.size // places,
    )  # fmt: skip


@lower("roll")
def roll(b: Builder, node: Node) -> None:
    """Every part of x to where it goes: two along each axis."""
    x, y = node.args[0], node.result
    need(isinstance(x, Value), "its input is a parameter")
    check(node, x)
    shift, axis = node.options["shift"], node.options["axis"]
    need(axis is not None, "it goes along no axis")
    shifts = [0] * len(x.shape)
    pairs = zip(*(np.broadcast_arrays(np.atleast_1d(shift), axis)), strict=True)
    for n, a in pairs:
        shifts[a] += int(n)
    cuts = []
    for size, n in zip(x.shape, shifts, strict=True):
        n %= size
        cuts.append([(0, n, size - n), (size - n, 0, n)] if n else [(0, 0, size)])
    source, distances = b.strided(x)
    out, dense = b.result(y), strides(y.shape)
    for cut in itertools.product(*cuts):
        origin, target, sizes = zip(*cut, strict=True)
        b.copy(
            sizes, at(source, origin, distances), distances,
            at(out, target, dense), dense,
        )  # fmt: skip


@lower("pad_constant")
def pad_constant(b: Builder, node: Node) -> None:
    """Slabs of the value on both sides of every axis, and x between."""
    x, y = node.args[0], node.result
    need(isinstance(x, Value), "its input is a parameter")
    check(node, x)
    pads, value = node.options["pads"], node.options["value"]
    need(isinstance(value, int | float | np.number), "its value is no number")
    if max(max(pair) for pair in pads) <= 0:
        inside = tuple(
            slice(-before, n + after)
            for n, (before, after) in zip(x.shape, pads, strict=True)
        )
        cut = dataclasses.replace(node, name="getitem", options={"index": inside})
        LOWERED["getitem"](b, cut)
        return
    need(min(min(pair) for pair in pads) >= 0, "it adds and takes away")
    source, distances = b.strided(x)
    slabs(b, source, distances, x.shape, b.result(y), pads, value)
