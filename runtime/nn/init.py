"""Initializers: each returns a function `(shape, dtype, device) -> array`.

Weights are (out, in, *kernel): fan_in is in * kernel, fan_out is out * kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod, sqrt
from typing import Any

import numpy as np

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


def uniform(bound: float, low: float | None = None) -> Initializer:
    """Uniform in [-bound, bound), or in [low, bound)."""
    start = -bound if low is None else low
    return lambda shape, dtype, device: rng.uniform(shape, start, bound, dtype, device)


def normal(std: float = 1.0, mean: float = 0.0) -> Initializer:
    """Normal with this deviation and mean."""
    return lambda shape, dtype, device: rng.normal(shape, mean, std, dtype, device)


def kaiming_uniform(gain: float = sqrt(2), fan_out: bool = False) -> Initializer:
    """Uniform with deviation gain / sqrt(fan): keeps the scale through ReLU layers."""
    return _scaled_uniform(lambda ins, outs: gain / sqrt(outs if fan_out else ins))


def kaiming_normal(gain: float = sqrt(2), fan_out: bool = False) -> Initializer:
    """Normal with deviation gain / sqrt(fan): keeps the scale through ReLU layers."""
    return _scaled_normal(lambda ins, outs: gain / sqrt(outs if fan_out else ins))


def xavier_uniform(gain: float = 1.0) -> Initializer:
    """Uniform with deviation gain * sqrt(2 / (fan_in + fan_out))."""
    return _scaled_uniform(lambda ins, outs: gain * sqrt(2 / (ins + outs)))


def xavier_normal(gain: float = 1.0) -> Initializer:
    """Normal with deviation gain * sqrt(2 / (fan_in + fan_out))."""
    return _scaled_normal(lambda ins, outs: gain * sqrt(2 / (ins + outs)))


def orthogonal(gain: float = 1.0) -> Initializer:
    """A matrix (out, in * kernel) with orthonormal rows or columns, times gain."""

    def make(shape: tuple[int, ...], dtype: Any, device: Device) -> Array:
        rows, width = shape[0], prod(shape[1:])
        tall = (max(rows, width), min(rows, width))
        q, r = np.linalg.qr(rng.generator().standard_normal(tall))
        q = q * np.sign(np.diagonal(r))
        q = q if rows >= width else q.T
        return device.put(gain * q.reshape(shape), dtype)

    return make


def fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """fan_in and fan_out of a weight."""
    kernel = prod(shape[2:])
    return shape[1] * kernel, shape[0] * kernel


def _scaled_uniform(deviation: Callable[[int, int], float]) -> Initializer:
    def make(shape: tuple[int, ...], dtype: Any, device: Device) -> Array:
        bound = sqrt(3) * deviation(*fans(shape))
        return rng.uniform(shape, -bound, bound, dtype, device)

    return make


def _scaled_normal(deviation: Callable[[int, int], float]) -> Initializer:
    def make(shape: tuple[int, ...], dtype: Any, device: Device) -> Array:
        return rng.normal(shape, 0.0, deviation(*fans(shape)), dtype, device)

    return make
