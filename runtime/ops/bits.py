"""Operators on the bits of integers; they have no gradients."""

from __future__ import annotations

from typing import Any

from burnish.operator import operator


@operator
def bitwise_and(a, b):
    """a & b"""
    return a & b


@operator
def bitwise_or(a, b):
    """a | b"""
    return a | b


@operator
def bitwise_xor(a, b):
    """a ^ b"""
    return a ^ b


@operator
def bitwise_not(x):
    """~x"""
    return ~x


@operator
def shift_left(a, b):
    """a << b"""
    return a << b


@operator
def shift_right(a, b):
    """a >> b"""
    return a >> b


def bit_shift(a: Any, b: Any, *, direction: str) -> Any:
    """a's bits moved by b places, direction "LEFT" or "RIGHT"."""
    return {"LEFT": shift_left, "RIGHT": shift_right}[direction](a, b)
