"""Lower `grid_sample`, which is one call of a program for a CPU."""

from __future__ import annotations

import inspect
import math
from typing import Any

from burnish.capture.tape import Tape
from burnish.kernels.records import GRIDS
from burnish.ops.spatial.grid_sample import CUBIC
from burnish.ops.spatial.grid_sample import grid_sample as sampled
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import CHANNELS, LANES, PLAIN, blocks
from burnish.plan.cpu.table import check, lower, need
from burnish.plan.graph import Constant, Node, Value

_SIGNATURE = inspect.signature(sampled)
_TAPS = {"nearest": 1, "bilinear": 2, "bicubic": 4}
_MOST_TAPS = 16


class SamplingTape(Tape):
    """Writes grid sampling down as one call, which has a kernel of its own."""

    def keeps(self, function: Any) -> bool:
        return function is sampled


@lower("grid_sample")
def grid_sample(b: Builder, node: Node) -> None:
    given = _SIGNATURE.bind(*node.args, **node.options)
    given.apply_defaults()
    x, grid, mode, padding, corners = given.args
    for each in (x, grid):
        need(isinstance(each, Value | Constant), "an input is a number")
    check(node, x, grid)
    images, channels, *sizes = x.shape
    rank, positions = len(sizes), math.prod(grid.shape[1:-1])
    need(rank <= 3 and _TAPS[mode] ** rank <= _MOST_TAPS, "it has too many neighbours")
    places, y = math.prod(sizes), node.result
    need(places < 2**24, "a map's places are too many")
    is_blocked = b.has(x, CHANNELS)
    layout, lanes = (CHANNELS, LANES) if is_blocked else (PLAIN, 1)
    first, second, third = [1] * (3 - rank) + sizes
    own, other = (images, 1) if is_blocked else (1, channels)
    b.add(
        "grid_sample", b.shares(y.size * 4 * _TAPS[mode] ** rank), x=b.spot(x, layout),
        grid=b.spot(grid), out=b.result(y, layout), fault=b.fault(), images=images,
        channels=blocks(channels) if is_blocked else channels, positions=positions,
        rank=rank, size0=first, size1=second, size2=third, taps=_TAPS[mode],
        padding=GRIDS[padding], corners=corners, is_blocked=is_blocked,
        x_image=lanes * places * other, x_channel=lanes * places * own,
        out_image=lanes * positions * other, out_channel=lanes * positions * own,
        cubic=CUBIC,
    )  # fmt: skip
