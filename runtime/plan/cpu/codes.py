"""Codes of rounded values as bytes: by a record, or by the product that they are of."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from burnish.plan.cpu.builder import Builder, Spot
from burnish.plan.cpu.layout import LANES, Layout
from burnish.plan.cpu.rounded import by_product, scheme
from burnish.plan.graph import Array, Value


class Maps(NamedTuple):
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


def codes(
    b: Builder, x: Value, maps: Maps, layout: Layout, width: int, plane: int
) -> Spot:
    """The codes of a rounded value, once for all readers that see them alike.

    width: of its rows, where it is in such. plane: elements from channel to channel
    where they lie apart, else 0.
    """
    key, r = (x.place, maps), b.rounded[x.place]
    if key not in b.codes:
        label, b.label = b.label, "quantize"
        source = b.spot(r.x, layout)
        b.codes[key] = b.new(maps.bytes)
        is_there = not plane and by_product(
            b, r, source, "codes", b.codes[key],
            size=(len(_places(maps)), width), places=b.table(_places(maps)),
            fault=b.fault(),
        )  # fmt: skip
        if not is_there or any(maps.before) or any(maps.behind):
            count = LANES * maps.images * math.prod(maps.sizes)
            is_blocked = layout.kind == "blocked"
            b.add(
                "quantize", b.shares(4 * r.x.size), x=None if is_there else source,
                **scheme(b, r), out=b.codes[key], fault=b.fault(),
                images=maps.images, width=width, size0=maps.sizes[0],
                size1=maps.sizes[1], before0=maps.before[0], before1=maps.before[1],
                behind0=maps.behind[0], behind1=maps.behind[1], one=r.one,
                x_row=LANES if is_blocked else width, x_plane=plane,
                out_row=maps.row, x_block=count if is_blocked else LANES,
            )  # fmt: skip
        b.label = label
    return b.codes[key]


def _places(maps: Maps) -> Array:
    """Where the bytes of every pixel begin."""
    (top, high, bottom), (left, wide, right) = maps.margined
    line = left + wide + right
    images = np.arange(maps.images)[:, None, None] * (top + high + bottom)
    lines = images + top + np.arange(high)[:, None]
    return ((lines * line + left + np.arange(wide)) * maps.row).reshape(-1)


def drop_unread(b: Builder) -> None:
    """Products of which only rounded results are read do not store the others."""
    for number, step in enumerate(b.steps):
        if step.kind != "quantized" or not step.fields["y_scale"]:
            continue
        buffer = step.fields["out"].buffer
        if buffer.is_arena and buffer.first == buffer.last == number:
            step.fields["out"] = None
            step.bytes -= buffer.size
            buffer.first = buffer.last = -1
