"""Comparisons that choose between values: plain booleans, without a record."""

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
