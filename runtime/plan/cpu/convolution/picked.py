"""Strided 1 x 1 convolutions: the pixels that they use are copied together first.

Pixels with strides lie in a part of a cache's sets, so that fewer of them fit, and each
group of outputs would read them from further away.
"""

from __future__ import annotations

import math

from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.convolution.geometry import Window
from burnish.plan.cpu.convolution.grouped import Groups
from burnish.plan.cpu.layout import LANES, blocks, strides

_LEAST = 4
"""Blocks of outputs that a copy pays for."""


def picked(
    b: Builder, w: Window, batch: int, source: Spot, step: int, g: Groups
) -> tuple[Spot, Window]:
    """Where the pixels that a window uses are, and the window over them.

    step: floats from a pixel to the next one. Measured with vectors of 8 numbers.
    """
    if b.width != 8 or step != LANES or blocks(g.outs) < _LEAST or not _skips(w):
        return source, w
    count = blocks(g.ins * g.number)
    shape = (count, batch, *w.out, LANES)
    whole = strides((count, batch, *w.sizes, LANES))
    pixels = (n * s for n, s in zip(whole[2:-1], w.stride, strict=True))
    out = b.new(4 * math.prod(shape))
    b.copy(shape, source, (*whole[:2], *pixels, 1), out, strides(shape))
    return out, w._replace(sizes=w.out, stride=(1,) * len(w.out))


def _skips(w: Window) -> bool:
    """Whether a window of one tap passes over pixels, and goes beyond no edge."""
    ends = zip(w.sizes, w.out, w.stride, w.before, strict=True)
    is_inside = all(before == 0 and (n - 1) * s < size for size, n, s, before in ends)
    one_tap = type(w) is Window and math.prod(w.kernel) == 1
    return one_tap and is_inside and max(w.stride) > 1
