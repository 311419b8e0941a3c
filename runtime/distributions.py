"""Distributions for `Tensor.random`.

from burnish.distributions import Normal
Tensor.random((2, 3), Normal(0.0, 0.02))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from burnish import rng
from burnish._engine.arguments import check_fields
from burnish.backend import Array, Device
from burnish.errors import InputError


class Distribution(Protocol):
    """Anything that draws an array of a shape and dtype on a device."""

    def draw(self, shape: tuple[int, ...], dtype: Any, device: Device) -> Array: ...


@dataclass(frozen=True)
class Default:
    """The dtype's default: [0, 1) for floats, any value for integers and booleans."""

    def draw(self, shape: tuple[int, ...], dtype: Any, device: Device) -> Array:
        dtype = np.dtype(dtype)
        if dtype.kind == "b":
            return Bernoulli(0.5).draw(shape, dtype, device)
        if dtype.kind in "iu":
            ends = np.iinfo(dtype)
            drawn = rng.generator().integers(
                ends.min, ends.max, shape, dtype, endpoint=True
            )
            return device.put(drawn)
        return Uniform().draw(shape, dtype, device)


@dataclass(frozen=True)
class Bernoulli:
    """1 with probability p, 0 otherwise."""

    p: float

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.p <= 1:
            raise InputError(f"Bernoulli: expected p from 0 to 1, got {self.p}")

    def draw(self, shape: tuple[int, ...], dtype: Any, device: Device) -> Array:
        drawn = rng.generator().random(shape) < self.p
        return device.put(drawn, dtype)


@dataclass(frozen=True)
class Uniform:
    """Between low and high, high left out; of integers each as often."""

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self)
        if not -np.inf < self.low < self.high < np.inf:
            raise InputError(
                f"Uniform: expected low < high, got {self.low}, {self.high}"
            )

    def draw(self, shape: tuple[int, ...], dtype: Any, device: Device) -> Array:
        if np.dtype(dtype).kind in "iu":
            low, high = int(np.ceil(self.low)), int(np.ceil(self.high))
            if low == high:
                raise InputError(f"{self}: expected an integer between the ends")
            ends = np.iinfo(dtype)
            if low < ends.min or high - 1 > ends.max:
                raise InputError(f"{self}: expected ends that {ends.dtype} holds")
            return device.put(rng.generator().integers(low, high, shape), dtype)
        return rng.uniform(shape, self.low, self.high, dtype, device)


@dataclass(frozen=True)
class Normal:
    """The normal distribution; integers are cut off."""

    mean: float = 0.0
    std: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self)

    def draw(self, shape: tuple[int, ...], dtype: Any, device: Device) -> Array:
        return rng.normal(shape, self.mean, self.std, dtype, device)
