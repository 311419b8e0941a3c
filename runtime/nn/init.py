"""Initializers: each returns a function `(shape, dtype, device) -> array`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burnish import rng
from burnish.backend import Array, Device

Initializer = Callable[[tuple[int, ...], Any, Device], Array]


def constant(value: float) -> Initializer:
    """Every element `value`."""
    return lambda shape, dtype, device: device.xp.full(shape, value, dtype)


def zeros(shape: tuple[int, ...], dtype: Any, device: Device) -> Array:
    """Every element 0."""
    return device.xp.zeros(shape, dtype)


def ones(shape: tuple[int, ...], dtype: Any, device: Device) -> Array:
    """Every element 1."""
    return device.xp.ones(shape, dtype)


def uniform(bound: float) -> Initializer:
    """Uniform in [-bound, bound)."""
    return lambda shape, dtype, device: rng.uniform(shape, -bound, bound, dtype, device)


def normal(std: float = 1.0) -> Initializer:
    """Normal with mean 0."""
    return lambda shape, dtype, device: rng.normal(shape, 0.0, std, dtype, device)
