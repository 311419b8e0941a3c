"""One seedable source of random numbers for initial weights, dropout and sampling."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend import Array, Device

_host: np.random.Generator | None = None


def seed(value: int) -> None:
    """Start every later draw of this process from `value`, on every device."""
    global _host
    _host = np.random.default_rng(value)


def generator() -> np.random.Generator:
    """The generator that all draws come from, drawn on the host."""
    global _host
    if _host is None:  # not at import: NumPy loads its random numbers on demand
        _host = np.random.default_rng()
    return _host


def state() -> Any:
    """Where the source is, to draw the same again with `restore`."""
    return generator().bit_generator.state


def restore(state: Any) -> None:
    """Let the source go on from where it was when `state` was taken."""
    generator().bit_generator.state = state


def uniform(
    shape: tuple[int, ...], low: float, high: float, dtype: Any, device: Device
) -> Array:
    """Uniform values in [low, high), shape `shape`, on `device`."""
    return device.put(generator().uniform(low, high, shape), dtype)


def normal(
    shape: tuple[int, ...], mean: float, std: float, dtype: Any, device: Device
) -> Array:
    """Normal values, shape `shape`, on `device`."""
    return device.put(generator().normal(mean, std, shape), dtype)


def keep_mask(shape: tuple[int, ...], probability: float, device: Device) -> Array:
    """Booleans, True with `probability`, shape `shape`, on `device`."""
    return device.put(generator().random(shape, np.float32) < probability)
