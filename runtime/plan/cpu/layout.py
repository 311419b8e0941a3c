"""Memory layout of a value: strides, offsets, channel blocks.

plain: as NumPy has them. blocked: [C/16][pixels][16] for the channels of one axis, the
other axes in their order among the pixels; lanes past the last channel are anything.
rows: [pixels][C], the channels of one axis last.

Either of these may be of bfloat16, for products: see `half.py`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from burnish.kernels.forms import LANES as LANES


class Layout(NamedTuple):
    """kind: "plain", "blocked" or "rows"; axis: the channels', not of plain ones.

    half: whether it is of bfloat16, an even number in a row, zeros behind the channels.
    """

    kind: str
    axis: int = 0
    half: bool = False


PLAIN = Layout("plain")
CHANNELS = Layout("blocked", 1)  # of maps


def blocks(channels: int) -> int:
    return -(-channels // LANES)


def pixels(shape: tuple[int, ...], axis: int) -> int:
    """The number of elements of every channel."""
    return math.prod(shape[:axis] + shape[axis + 1 :])


def length(shape: tuple[int, ...], layout: Layout) -> int:
    """The elements that a value takes, padding after the last channel included."""
    if layout.kind != "blocked":
        return math.prod(shape)
    return blocks(shape[layout.axis]) * LANES * pixels(shape, layout.axis)


def strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """From an element to the next one along each axis, of a plain value."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
