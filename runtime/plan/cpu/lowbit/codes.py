"""Codes of rounded values as bytes: written by a record, or by the product itself."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import LANES, PLAIN, Layout
from burnish.plan.cpu.lowbit.rounded import Rounded, by_product, scheme
from burnish.plan.cpu.lowbit.sums import Sum, pending
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
    def dense(self) -> Maps:
        """The same without margins."""
        return self._replace(before=(0, 0), behind=(0, 0))

    @property
    def margined(self) -> list[tuple[int, int, int]]:
        return list(zip(self.before, self.sizes, self.behind, strict=True))


def codes(
    b: Builder, x: Value, maps: Maps, layout: Layout, width: int, plane: int
) -> Spot:
    """The codes of a rounded value, once for all readers that see them alike.

    width: of its rows, where it is in such. plane: elements from channel to channel
    where they are strided, else 0.
    """
    r = b.rounded[x.place]
    key = r, maps
    if key not in b.codes:
        label, b.label = b.label, "quantize"
        b.codes[key] = b.new(maps.bytes)
        summed = None if plane else pending(b, r)
        if summed is not None and _dense(summed) == maps.dense:
            _add_up(b, r, summed, maps, b.codes[key])
            is_there, source = True, None
        else:
            source = b.spot(r.x, layout)
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


def _dense(summed: Sum) -> Maps:
    """The maps of a sum's operands, without margins."""
    shape, nothing = summed.a.shape, (0, 0)
    row = -(-summed.width // LANES) * LANES
    if summed.layout == PLAIN:
        return Maps(1, (1, summed.a.size // summed.width), nothing, nothing, row)
    sizes = (*(1,) * (4 - len(shape)), *shape[2:])
    return Maps(shape[0], sizes, nothing, nothing, row)


def _add_up(b: Builder, r: Rounded, summed: Sum, maps: Maps, out: Spot) -> None:
    """Write the codes of a sum, from those of its terms."""
    dense, layout, width = maps.dense, summed.layout, summed.width
    fields: dict[str, Any] = {}
    for name, x in (("a", summed.a), ("b", summed.b)):
        rounding = scheme(b, b.rounded[x.place])
        held = codes(b, x, dense, layout, width, 0)
        fields |= {name: held, f"{name}_scale": rounding["scale"]}
        fields[f"{name}_zero"] = rounding["zero"]
    rounding = scheme(b, r)
    (top, high, bottom), (left, wide, right) = maps.margined
    b.label = summed.label
    b.add(
        "codes_sum", b.shares(2 * r.x.size), **fields, out=out, scale=rounding["scale"],
        zero=rounding["zero"], images=maps.images, size0=high, size1=wide,
        margin0=top + bottom, margin1=left + right, row=maps.row,
        start=(top * (left + wide + right) + left) * maps.row, y_low=r.low,
        y_high=r.high, low=summed.low, high=summed.high,
    )  # fmt: skip
    b.label = "quantize"


def values_of_sum(b: Builder, result: Value, r: Rounded) -> bool:
    """Compute a rounded sum's values from its codes; False where it is none."""
    summed = pending(b, r)
    if summed is None:
        return False
    maps, layout, width = _dense(summed), summed.layout, summed.width
    held, count = codes(b, result, maps, layout, width, 0), len(_places(maps))
    rounding = scheme(b, r)
    is_plain = layout == PLAIN
    b.add(
        "dequantize", b.shares(r.x.size), x=held, scale=rounding["scale"],
        zero=rounding["zero"], out=b.result(result, layout), rows=count,
        width=width if is_plain else maps.row, row=maps.row,
        out_row=width if is_plain else LANES,
        out_block=LANES if is_plain else LANES * count,
    )  # fmt: skip
    return True


def _places(maps: Maps) -> Array:
    """Where the bytes of every pixel begin."""
    (top, high, bottom), (left, wide, right) = maps.margined
    line = left + wide + right
    images = np.arange(maps.images)[:, None, None] * (top + high + bottom)
    lines = images + top + np.arange(high)[:, None]
    return ((lines * line + left + np.arange(wide)) * maps.row).reshape(-1)


def drop_unread(b: Builder) -> None:
    """Products whose results are only read rounded store codes alone."""
    for number, step in enumerate(b.steps):
        if step.kind != "quantized" or not step.fields["y_scale"]:
            continue
        buffer = step.fields["out"].buffer
        if buffer.is_arena and buffer.first == buffer.last == number:
            step.fields["out"] = None
            step.bytes -= buffer.size
            buffer.first = buffer.last = -1
