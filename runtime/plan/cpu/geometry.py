"""Tiles of pixels that share their taps: the tables of convolutions and windows."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from burnish.plan.cpu.layout import strides

Array = np.ndarray[Any, Any]


class Window(NamedTuple):
    """A window over maps: sizes in and out, and how it goes, for each spatial axis."""

    sizes: tuple[int, ...]
    out: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]


class Tiles(NamedTuple):
    """tiles: rows of (first, count, stride, runs, n_runs, last, n_last). source, to:
    the pixels' places in the order of the tiles. runs: (x, weight, length)."""

    tiles: Array
    source: Array
    to: Array
    runs: Array


def tiled(
    batch: int, w: Window, rows: int, step: int, lanes: int, tail: int, wide: bool
) -> Tiles:
    """The tables for a batch of maps.

    rows: the most pixels of a tile. step: floats from a pixel to the next one. lanes,
    tail: the channels that a tap reads in all blocks but the last, and in that one.
    wide: whether kernels know tiles whose inputs are `LANES` apart.
    """
    of_axis = [_valid(*each) for each in zip(*w, strict=True)]
    kinds = [np.unique(valid, axis=0, return_inverse=True) for valid in of_axis]
    labels = np.zeros(w.out, np.int64)
    for axis, (unique, inverse) in enumerate(kinds):
        shape = [1] * len(w.out)
        shape[axis] = -1
        labels = labels * len(unique) + inverse.reshape(shape)
    label = np.tile(labels.reshape(-1), batch)
    pitch = strides(w.sizes)
    base = np.zeros(w.out, np.int64)
    for axis, stride in enumerate(w.stride):
        shape = [1] * len(w.out)
        shape[axis] = -1
        place = np.arange(w.out[axis]) * stride - w.before[axis]
        base = base + place.reshape(shape) * pitch[axis]
    images = np.arange(batch)[:, None] * math.prod(w.sizes)
    base = (images + base.reshape(1, -1)).reshape(-1) * step
    order = np.argsort(label, kind="stable")
    runs: list[tuple[int, int, int]] = []
    tiles: list[tuple[int, ...]] = []
    choices = [unique for unique, _ in kinds]
    counts = np.bincount(label, minlength=math.prod(map(len, choices)))
    start = 0
    for spans, count in zip(itertools.product(*choices), counts, strict=True):
        taps = list(_taps(spans, w, pitch, step))
        whole = _runs(taps, lanes, step, runs)
        last = whole if tail == lanes else _runs(taps, tail, 0, runs)
        parts = -(-int(count) // rows)
        cuts = [start + i * int(count) // max(parts, 1) for i in range(parts + 1)]
        for a, b in itertools.pairwise(cuts):
            steps = np.diff(base[order[a:b]])
            regular = wide and step == 16 and b - a > 1 and (steps == 16).all()
            tiles.append((a, b - a, 16 if regular else 0, *whole, *last))
        start += int(count)
    tiles.sort(key=lambda tile: order[tile[0]])
    return Tiles(
        np.array(tiles, np.int32).reshape(-1, 7),
        base[order],
        order,
        np.array(runs, np.int32).reshape(-1, 3),
    )


def _valid(
    size: int, out: int, kernel: int, stride: int, dilation: int, before: int
) -> Array:
    """For every place of an axis the taps that are inside: (first, behind the last)."""
    start = np.arange(out) * stride - before
    first = np.clip(-(start // dilation), 0, kernel)
    behind = np.clip((size - 1 - start) // dilation + 1, first, kernel)
    return np.stack([first, behind], axis=1)


def _taps(spans: Any, w: Window, pitch: Any, step: int) -> Any:
    """The valid taps in their order: (place of the input, number of the tap)."""
    numbers = strides(w.kernel)
    for tap in itertools.product(*(range(*span) for span in spans)):
        moved = zip(tap, w.dilation, pitch, strict=True)
        x = sum(k * dilation * p for k, dilation, p in moved) * step
        yield int(x), int(sum(k * n for k, n in zip(tap, numbers, strict=True)))


def _runs(
    taps: list[tuple[int, int]],
    length: int,
    step: int,
    runs: list[tuple[int, int, int]],
) -> tuple[int, int]:
    """Write down taps as runs, joined where they lie side by side; (first, count)."""
    first = len(runs)
    for x, number in taps:
        weight = number * length
        if len(runs) > first and length == step:
            px, pw, pl = runs[-1]
            if px + pl == x and pw + pl == weight:
                runs[-1] = (px, pw, pl + length)
                continue
        runs.append((x, weight, length))
    return first, len(runs) - first
