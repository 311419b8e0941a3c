"""Random samples of indices by weight."""

from __future__ import annotations

import math

import numpy as np

from burnish import rng
from burnish.backend import Array, Device, as_places, namespace
from burnish.errors import InputError
from burnish.operator import operator


@operator
def multinomial(x, /, num_samples: int, replacement: bool = False) -> Array:
    """Numbers drawn by weights: (..., n) -> (..., num_samples) int64

    x: weights, not negative; they need not add up to 1. Without replacement no number
    is drawn twice.
    """
    xp, (*lead, n) = namespace(x), x.shape or (1,)
    weights = x.reshape(math.prod(lead), n).astype(xp.float64)
    usable = (weights > 0).sum(axis=1)
    needed = 1 if replacement else num_samples
    if xp is np and bool((~(weights >= 0)).any() | (usable < needed).any()):
        raise InputError(
            f"multinomial: expected weights (..., n) of 0 and more, at least {needed} "
            f"of them positive in a row, got {x.shape}"
        )
    draw = _repeated if replacement else _different
    drawn = draw(xp, weights, num_samples).reshape(*lead, num_samples)
    return as_places(drawn)


def _different(xp, weights: Array, count: int) -> Array:
    """Of waiting times with these rates the shortest (Efraimidis and Spirakis)."""
    u = rng.uniform(weights.shape, 0, 1, xp.float64, Device.of(weights))
    with_weight = xp.where(weights > 0, weights, 1)
    waits = xp.where(weights > 0, -xp.log1p(-u) / with_weight, xp.inf)
    return xp.argsort(waits, axis=1)[:, :count]


def _repeated(xp, weights: Array, count: int) -> Array:
    """The cumulated weights of row i lie between i and i + 1, so one search does."""
    rows, n = weights.shape
    u = rng.uniform((rows, count), 0, 1, xp.float64, Device.of(weights))
    ends = weights.cumsum(axis=1)
    row = xp.arange(rows)[:, None]
    places = (ends / ends[:, -1:] + row).reshape(-1)
    found = xp.searchsorted(places, u + row, side="right") - row * n
    last = n - 1 - (weights[:, ::-1] > 0).argmax(axis=1)
    return xp.minimum(found, last[:, None])
