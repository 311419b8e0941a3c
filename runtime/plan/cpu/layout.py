"""Memory layout of a value: strides, offsets, channel blocks.

plain: as NumPy has them. blocked: [C/16][pixels][16] for the channels of one axis, the
other axes in their order among the pixels; lanes past the last channel are anything.
rows: [pixels][C], the channels of one axis last.

Either of these may be of bfloat16, for products: see `half.py`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

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


def split(shape: tuple[int, ...], axis: int, cut: Any) -> tuple[int, ...]:
    """A shape whose channels, those of the cut, are two axes: (blocks, lanes)."""
    if cut is None:
        return shape
    start, end = cut
    lanes = min(LANES, end - start)
    return (*shape[:axis], (end - start) // lanes, lanes, *shape[axis + 1 :])


def places(
    shape: tuple[int, ...], layout: Layout, axis: int, cut: Any
) -> tuple[tuple[int, ...], int]:
    """Distances along the axes of `split`, and the first element's place."""
    if layout.kind == "blocked":
        others = shape[:axis] + shape[axis + 1 :]
        steps = [LANES * s for s in strides(others)]
        block = LANES * pixels(shape, axis)
        return (*steps[:axis], block, 1, *steps[axis:]), cut[0] // LANES * block
    if layout.kind == "rows":
        others = shape[: layout.axis] + shape[layout.axis + 1 :]
        count = shape[layout.axis]
        steps = [count * s for s in strides(others)]
        full = (*steps[: layout.axis], 1, *steps[layout.axis :])
    else:
        full = strides(shape)
    if cut is None:
        return full, 0
    step = full[axis]
    lanes = min(LANES, cut[1] - cut[0])
    whole = (*full[:axis], lanes * step, step, *full[axis + 1 :])
    return whole, cut[0] * step
