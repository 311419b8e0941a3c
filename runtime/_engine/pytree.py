"""Flatten and map nested lists, tuples and dicts (pytrees)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

LISTS = list, tuple
"""What is looked into besides dicts."""


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """`value` with `change` applied to everything in lists, tuples and dicts."""
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    if isinstance(value, LISTS):
        items = [mapped(item, change) for item in value]
        kind = type(value)
        return kind._make(items) if hasattr(kind, "_make") else kind(items)
    return change(value)


def leaves(value: Any) -> list[Any]:
    """Everything in lists, tuples and dicts, always in the same order."""
    found: list[Any] = []
    _collect(value, found)
    return found


def _collect(value: Any, found: list[Any]) -> None:
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, LISTS):
        found.append(value)
        return
    for item in value:
        _collect(item, found)
