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

    @property
    def axes(self) -> list[Axis]:
        """The input positions of every output position, by axis."""
        return [_strided(*each) for each in zip(*self, strict=True)]


class Adjoint(Window):
    """The window of a transposed convolution: its places out are those that it goes
    over, its positions in those that contain it."""

    @property
    def axes(self) -> list[Axis]:
        return [_turned(*each) for each in zip(*self, strict=True)]


class Axis(NamedTuple):
    """kinds: the taps that a place may see: (number of the tap, places from the base).
    kind, base: of every place of the result."""

    kinds: list[tuple[tuple[int, int], ...]]
    kind: Array
    base: Array


class Tiles(NamedTuple):
    """tiles: rows of (first, count, stride, runs, n_runs, last, n_last). source, to:
    the pixels' places in the order of the tiles. runs: (x, weight, length)."""

    tiles: Array
    source: Array
    to: Array
    runs: Array


def tiled(
    batch: int,
    w: Window,
    rows: int,
    step: int,
    lanes: int,
    tail: int,
    pitches: tuple[int, ...] = (),
) -> Tiles:
    """The tables for a batch of maps.

    rows: the most pixels of a tile. step: floats from a pixel to the next one. lanes,
    tail: the channels that a tap reads in all blocks but the last, and in that one.
    pitches: how far apart the inputs of a tile may be for kernels to need no table.
    """
    axes = w.axes
    pitch = strides(w.sizes)
    labels, base = np.zeros(w.out, np.int64), np.zeros(w.out, np.int64)
    for i, axis in enumerate(axes):
        shape = [1] * len(w.out)
        shape[i] = -1
        labels = labels * len(axis.kinds) + axis.kind.reshape(shape)
        base = base + axis.base.reshape(shape) * pitch[i]
    label = np.tile(labels.reshape(-1), batch)
    images = np.arange(batch)[:, None] * math.prod(w.sizes)
    base = (images + base.reshape(1, -1)).reshape(-1) * step
    order = np.argsort(label, kind="stable")
    runs: list[tuple[int, int, int]] = []
    tiles: list[tuple[int, ...]] = []
    choices = [axis.kinds for axis in axes]
    counts = np.bincount(label, minlength=math.prod(map(len, choices)))
    start = 0
    for seen, count in zip(itertools.product(*choices), counts, strict=True):
        taps = list(_taps(seen, w, pitch, step))
        whole = _runs(taps, lanes, step, runs)
        last = whole if tail == lanes else _runs(taps, tail, 0, runs)
        parts = -(-int(count) // rows)
        cuts = [start + i * int(count) // max(parts, 1) for i in range(parts + 1)]
        for a, b in itertools.pairwise(cuts):
            steps = set(np.diff(base[order[a:b]]).tolist())
            known = steps.pop() if len(steps) == 1 else 0
            known = known if known in pitches else 0
            tiles.append((a, b - a, known, *whole, *last))
        start += int(count)
    tiles.sort(key=lambda tile: order[tile[0]])
    return Tiles(
        np.array(tiles, np.int32).reshape(-1, 7),
        base[order],
        order,
        np.array(runs, np.int32).reshape(-1, 3),
    )


def _strided(
    size: int, out: int, kernel: int, stride: int, dilation: int, before: int
) -> Axis:
    """The taps of every place that are inside; the base is where the first would be."""
    base = np.arange(out) * stride - before
    first = np.clip(-(base // dilation), 0, kernel)
    behind = np.clip((size - 1 - base) // dilation + 1, first, kernel)
    spans = np.stack([first, behind], axis=1)
    unique, kind = np.unique(spans, axis=0, return_inverse=True)
    kinds = [tuple((k, k * dilation) for k in range(*span)) for span in unique.tolist()]
    return Axis(kinds, kind, base)


def _turned(
    size: int, out: int, kernel: int, stride: int, dilation: int, before: int
) -> Axis:
    """The taps that reach every place from a position of the window."""
    found: dict[tuple[tuple[int, int], ...], int] = {}
    kind, base = np.zeros(out, np.int64), np.zeros(out, np.int64)
    for place in range(out):
        moved = [(k, place + before - k * dilation) for k in range(kernel)]
        taps = [(k, m // stride) for k, m in moved if m % stride == 0]
        inside = [(k, x) for k, x in taps if 0 <= x < size]
        base[place] = inside[0][1] if inside else 0
        seen = tuple((k, int(x - base[place])) for k, x in inside)
        kind[place] = found.setdefault(seen, len(found))
    return Axis(list(found), kind, base)


def _taps(seen: Any, w: Window, pitch: Any, step: int) -> Any:
    """The valid taps in their order: (place of the input, number of the tap)."""
    numbers = strides(w.kernel)
    for taps in itertools.product(*seen):
        x = sum(offset * p for (_, offset), p in zip(taps, pitch, strict=True)) * step
        yield int(x), int(sum(k * n for (k, _), n in zip(taps, numbers, strict=True)))


def _runs(
    taps: list[tuple[int, int]],
    length: int,
    step: int,
    runs: list[tuple[int, int, int]],
) -> tuple[int, int]:
    """Write down taps as runs, joined where they are adjacent; (first, count)."""
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
