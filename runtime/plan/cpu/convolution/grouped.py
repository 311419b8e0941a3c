"""Grouped convolutions whose groups do not fill whole channel blocks or tiles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from burnish.plan.cpu.layout import LANES, blocks
from burnish.plan.graph import Constant

_SAVED = 1.5
"""Times fewer products with which unequal parts pay: each is a record of its own."""


_MANY = 64
"""Places from which on better tiles are worth a record of their own."""


class Groups(NamedTuple):
    """A grouped convolution: channels in and out are those of one group."""

    number: int
    ins: int
    outs: int

    @property
    def are_blocks(self) -> bool:
        whole = self.ins % LANES == 0 and self.outs % LANES == 0
        return self.number == 1 or whole


class Part(NamedTuple):
    """Channels out and the range of channels in that they need."""

    outs: range
    ins: range

    @property
    def products(self) -> int:
        return blocks(len(self.outs)) * blocks(len(self.ins))


def merged(g: Groups) -> Groups:
    """Neighbours merged, with zeros between them, until groups are whole blocks."""
    for many in range(1, g.number + 1):
        wide = Groups(g.number // many, many * g.ins, many * g.outs)
        if g.number % many == 0 and wide.are_blocks:
            return wide
    raise AssertionError("one group is always whole")


def split(g: Groups) -> list[Part]:
    """Blocks of channels out with the blocks of channels in that their groups have."""
    parts: list[Part] = []
    for first in range(0, g.number * g.outs, LANES):
        behind = min(first + LANES, g.number * g.outs)
        low = first // g.outs * g.ins // LANES * LANES
        high = -(-behind // g.outs) * g.ins
        ins = range(low, min(blocks(high) * LANES, g.number * g.ins))
        if parts and parts[-1].ins == ins:
            first = parts.pop().outs.start
        parts.append(Part(range(first, behind), ins))
    return parts


def is_split_faster(g: Groups) -> bool:
    """Whether parts of unequal sizes take far fewer products than merged groups."""
    wide = merged(g)
    whole = wide.number * blocks(wide.outs) * blocks(wide.ins)
    return sum(part.products for part in split(g)) * _SAVED < whole


def uneven(rows: list[int], g: Groups, places: int) -> list[Part] | None:
    """All but three blocks of channels out, and those, where no tile divides them all.

    rows: the most places of a tile, by its blocks.
    """
    count = blocks(g.outs)
    is_whole = any(rows[nr] and count % nr == 0 for nr in (2, 3, 4))
    if not rows[3] or count < 5 or is_whole or places < _MANY:
        return None
    cut = LANES * (count - 3)
    return [Part(range(cut), range(g.ins)), Part(range(cut, g.outs), range(g.ins))]


def merged_weight(weight: Constant, g: Groups) -> Constant:
    """The weight of merged groups: zero where a channel is of another group."""
    wide = merged(g)
    if wide == g:
        return weight
    parts = [
        Part(range(o, o + wide.outs), range(i, i + wide.ins))
        for o, i in zip(
            range(0, g.number * g.outs, wide.outs),
            range(0, g.number * g.ins, wide.ins),
            strict=True,
        )
    ]
    return weight.then(lambda a: np.concatenate(list(_dense(a, g, parts))))


def part_weight(weight: Constant, g: Groups, part: Part) -> Constant:
    """The dense weight of one part."""
    return weight.then(lambda a: next(_dense(a, g, [part])))


def _dense(a: Any, g: Groups, parts: Iterable[Part]) -> Iterator[Any]:
    """a (outs of all groups, ins of one, *kernel) as dense weights."""
    for outs, ins in parts:
        made = np.zeros((len(outs), len(ins), *a.shape[2:]), a.dtype)
        for group in range(outs.start // g.outs, math.ceil(outs.stop / g.outs)):
            low = max(outs.start, group * g.outs)
            high = min(outs.stop, (group + 1) * g.outs)
            at = group * g.ins - ins.start
            made[low - outs.start : high - outs.start, at : at + g.ins] = a[low:high]
        yield made
