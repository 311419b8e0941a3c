"""Tables of the runs of pixels that a weight's gradient is summed over."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from burnish.plan.cpu.convolution.geometry import Window
from burnish.plan.cpu.layout import LANES, strides

_MOST, _MOST_ONCE = 160, 256
"""Places of a chunk: what its channels are in stays in the first-level cache. More
where a window has one tap: sums of more places are added up less often."""


class Runs(NamedTuple):
    """runs: rows of (place in x, place in g, places). starts: of every chunk's every
    tap, the first of its runs, and how many there are at the end. x_by, g_by: from a
    place of a run to the next one. All in floats."""

    runs: np.ndarray[Any, Any]
    starts: np.ndarray[Any, Any]
    chunks: int
    x_by: int
    g_by: int


def runs_of(batch: int, w: Window, x_step: int = LANES, g_step: int = LANES) -> Runs:
    """The tables for a batch of maps; a run goes along the batch where maps are small.

    A window of one tap that goes over all places goes over them as one row. x_step,
    g_step: floats from a place to the next one.
    """
    if math.prod(w.kernel) == 1 and set(w.stride) == {1} and w.sizes == w.out:
        count = batch * math.prod(w.out)
        batch, w = 1, Window((count,), (count,), (1,), (1,), (1,), (0,))
    # of every axis, the batch first: places in x and in g for each tap along it
    images = np.arange(batch)
    axes = [[(images * math.prod(w.sizes), images * math.prod(w.out), images)]]
    steps = [(math.prod(w.sizes), math.prod(w.out))]
    sizes = [batch, *w.out]
    for axis, (x_pitch, g_pitch) in enumerate(
        zip(strides(w.sizes), strides(w.out), strict=True)
    ):
        found = []
        for k in range(w.kernel[axis]):
            out = np.arange(w.out[axis])
            at = out * w.stride[axis] - w.before[axis] + k * w.dilation[axis]
            inside = (at >= 0) & (at < w.sizes[axis])
            found.append((at[inside] * x_pitch, out[inside] * g_pitch, out[inside]))
        axes.append(found)
        steps.append((w.stride[axis] * x_pitch, g_pitch))
    along = len(sizes) - 1 if w.out[-1] >= batch else 0
    most = _MOST_ONCE if math.prod(w.kernel) == 1 else _MOST
    rows, starts, chunks = _rows(axes, sizes, along, most)
    x_by, g_by = steps[along]
    rows *= [x_step, g_step, 1]
    return Runs(rows, starts, chunks, x_by * x_step, g_by * g_step)


def _rows(axes: Any, sizes: list[int], along: int, most: int) -> tuple[Any, Any, int]:
    """Runs along an axis, in the order of their chunks and taps; see `Runs`.

    most: the places of a chunk.
    """
    length = sizes[along]
    pieces = -(-length // most)
    piece = -(-length // pieces)
    together = max(1, most // length)
    others = [axis for axis in range(len(sizes)) if axis != along]
    outer = math.prod(sizes[axis] for axis in others)
    chunks = -(-outer // together) * pieces
    found = []
    taps = list(itertools.product(*axes))
    for number, tap in enumerate(taps):
        x, g, place = (
            np.zeros(1, np.int64),
            np.zeros(1, np.int64),
            np.zeros(1, np.int64),
        )
        for axis in others:
            xs, gs, at = tap[axis]
            x = (x[:, None] + xs).reshape(-1)
            g = (g[:, None] + gs).reshape(-1)
            place = (place[:, None] * sizes[axis] + at).reshape(-1)
        xs, gs, at = tap[along]
        for part in range(pieces):
            inside = (at >= part * piece) & (at < (part + 1) * piece)
            if not inside.any() or not len(place):
                continue
            first = int(inside.argmax())
            chunk = place // together * pieces + part
            row = np.empty((len(place), 5), np.int64)
            row[:, 0], row[:, 1] = chunk, number
            row[:, 2], row[:, 3] = x + xs[first], g + gs[first]
            row[:, 4] = inside.sum()
            found.append(row)
    table = np.concatenate(found) if found else np.zeros((0, 5), np.int64)
    key = table[:, 0] * len(taps) + table[:, 1]
    order = np.argsort(key, kind="stable")
    counts = np.bincount(key, minlength=chunks * len(taps))
    starts = np.concatenate([[0], np.cumsum(counts)])
    return table[order, 2:], starts, chunks
