"""Operators on the bits of numbers; they have no gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend import Array, namespace
from burnish.errors import InputError
from burnish.operator import composed, operator


@operator
def bitwise_and(a, b) -> Array:
    """a & b"""
    return a & b


@operator
def bitwise_or(a, b) -> Array:
    """a | b"""
    return a | b


@operator
def bitwise_xor(a, b) -> Array:
    """a ^ b"""
    return a ^ b


@operator
def bitwise_not(x) -> Array:
    """~x"""
    return ~x


@operator
def shift_left(a, b) -> Array:
    """a << b"""
    return a << b


@operator
def shift_right(a, b) -> Array:
    """a >> b"""
    return a >> b


@composed
def bit_shift(a: Any, b: Any, *, direction: str) -> Array:
    """a's bits moved by b places, direction "LEFT" or "RIGHT"."""
    if direction not in ("LEFT", "RIGHT"):
        raise InputError(
            f"bit_shift: expected direction 'LEFT' or 'RIGHT', got {direction!r}"
        )
    return shift_left(a, b) if direction == "LEFT" else shift_right(a, b)


@operator
def bit_cast(x, *, dtype: Any) -> Array:
    """x's bits read as another dtype of the same size."""
    dtype = np.dtype(dtype)
    if dtype.itemsize != x.dtype.itemsize:
        raise InputError(
            f"bit_cast: expected a dtype of {x.dtype.itemsize} bytes for x of "
            f"{x.dtype}, got {dtype}"
        )
    return namespace(x).ascontiguousarray(x).view(dtype).reshape(x.shape)
