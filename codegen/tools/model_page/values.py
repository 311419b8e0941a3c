"""Histogram and statistics of a tensor's values; large tensors are sampled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burnish.codegen.tools.model_page.boxes import Histogram

SAMPLE = 4096
"""So many values of one tensor are read, in blocks spread over all of it."""
TENSORS = 2000
"""So many tensors of one model have histograms."""
_BLOCK = 64
_BINS = 24


def histogram(array: Any) -> Histogram | None:
    """Statistics of numbers; None for text, empty and never finite tensors."""
    taken = sample(np.asarray(array))
    if taken is None or taken.size == 0:
        return None
    finite = taken[np.isfinite(taken)]
    if finite.size == 0:
        return None
    low, high = float(finite.min()), float(finite.max())
    if high > low and math.isfinite(high - low):
        counts, _ = np.histogram(finite, _BINS, (low, high))
    else:
        counts = np.array([finite.size])
    with np.errstate(all="ignore"):
        mean, deviation = float(finite.mean()), float(finite.std())
    return Histogram(
        low,
        high,
        mean,
        deviation,
        int(np.count_nonzero(finite == 0)),
        int(taken.size - finite.size),
        int(taken.size),
        tuple(map(int, counts)),
    )


def sample(array: np.ndarray) -> np.ndarray | None:
    """All values, or blocks of neighbours at equal distances; float64.

    A mapped file is read at these places alone. None where they are no real numbers.
    """
    if array.dtype.kind in "OSUMmc":
        return None
    if array.size > SAMPLE:
        blocks = SAMPLE // _BLOCK
        starts = np.linspace(0, array.size - _BLOCK, blocks).astype(np.int64)
        places = (starts[:, None] + np.arange(_BLOCK)).reshape(-1)
        array = array[np.unravel_index(places, array.shape)]
    try:
        return array.astype(np.float64).reshape(-1)
    except (TypeError, ValueError):
        return None
