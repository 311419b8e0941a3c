"""Small plots of text: two by four dots a character."""

from __future__ import annotations

import math
from collections.abc import Sequence

_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))


def plot(values: Sequence[float], width: int, height: int) -> list[str]:
    """A line through `values`, as `height` rows of `width` characters.

    The lowest finite value is at the bottom, the highest at the top.
    """
    across, down = 2 * width, 4 * height
    finite = [value for value in values if math.isfinite(value)]
    cells = [[0] * width for _ in range(height)]
    if finite:
        low, high = min(finite), max(finite)
        scale = (down - 1) / (high - low) if high > low else 0.0
        last: int | None = None
        for x in range(across):
            value = _at(values, x / (across - 1))
            if not math.isfinite(value):
                last = None
                continue
            y = round((high - value) * scale) if scale else down // 2
            # the line goes through every dot between two neighbours
            before = y if last is None else last
            for dot in range(min(y, before), max(y, before) + 1):
                cells[dot // 4][x // 2] |= _DOTS[x % 2][dot % 4]
            last = y
    return ["".join(chr(0x2800 + cell) for cell in row) for row in cells]


def _at(values: Sequence[float], part: float) -> float:
    """The value `part` of the way along, between its two neighbours."""
    place = part * (len(values) - 1)
    left = min(int(place), max(len(values) - 2, 0))
    right = min(left + 1, len(values) - 1)
    a, b = values[left], values[right]
    return a + (b - a) * (place - left)
