"""Comparisons that give plain boolean arrays, for which no gradient is recorded."""

from __future__ import annotations

from typing import Any

from burnish.steps import step


@step
def is_above(x: Any, limit: float) -> Any:
    """x > limit"""
    return x > limit


@step
def is_equal(x: Any, value: float) -> Any:
    """x == value"""
    return x == value
