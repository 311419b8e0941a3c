"""One seedable source of random numbers; it draws as Burnish does on a CPU."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from burnish.backend.philox import drawn_mask

_source: list[np.random.Generator] = []


def seed(value: int) -> None:
    """Start every later draw of this process from `value`."""
    _source[:] = [np.random.default_rng(value)]


def generator() -> np.random.Generator:
    """The generator that all draws come from."""
    if not _source:
        _source.append(np.random.default_rng())
    return _source[0]


def uniform(
    shape: tuple[int, ...], low: float, high: float, dtype: Any, device: Any
) -> np.ndarray:
    """Uniform values in [low, high), shape `shape`."""
    drawn = np.asarray(generator().uniform(low, high, shape), dtype)
    if drawn.dtype.kind == "f":  # rounding to a narrow dtype may reach `high`
        kind = drawn.dtype.type
        np.minimum(drawn, np.nextafter(kind(high), kind(low)), out=drawn)
    return drawn


def normal(
    shape: tuple[int, ...], mean: float, std: float, dtype: Any, device: Any
) -> np.ndarray:
    """Normal values, shape `shape`."""
    return np.asarray(generator().normal(mean, std, shape), dtype)


def keep_mask(shape: tuple[int, ...], probability: float, device: Any) -> np.ndarray:
    """Booleans, True with `probability`, shape `shape`."""
    key = int(generator().integers(1 << 63))
    return drawn_mask(prod(shape), probability, key).reshape(shape)
