"""Padding: copies of a value's interior, and of the borders around it."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import strides
from burnish.plan.graph import constant


def slabs(
    b: Builder, source: Spot, distances: Any, sizes: Any, out: Spot, pads: Any,
    value: Any,
) -> None:  # fmt: skip
    """Copies of slabs of a value on both sides of every axis, and of the interior.

    value: one number, or those along the last axis.
    """
    whole = tuple(n + sum(pair) for n, pair in zip(sizes, pads, strict=True))
    dense = strides(whole)
    filling = np.asarray(value, np.float32).reshape(-1)
    filled, step = b.constant(constant(filling)), int(filling.size > 1)
    start, left = [0] * len(pads), list(whole)
    for axis, (before, after) in enumerate(pads):
        for n, place in ((before, 0), (after, whole[axis] - after)):
            if n:
                slab = (*left[:axis], n, *left[axis + 1 :])
                first = [*start[:axis], place, *start[axis + 1 :]]
                none = (*[0] * (len(slab) - 1), step)
                b.copy(slab, filled, none, at(out, first, dense), dense)
        start[axis], left[axis] = before, sizes[axis]
    b.copy(tuple(sizes), source, distances, at(out, start, dense), dense)


def at(spot: Spot, place: Any, distances: Any) -> Spot:
    """The element of a value at a place."""
    elements = sum(p * d for p, d in zip(place, distances, strict=True))
    return spot.beyond(elements)
