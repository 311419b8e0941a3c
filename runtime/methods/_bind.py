"""Operators as methods."""

from __future__ import annotations

import functools
from operator import index
from typing import Any


def method(operator: Any) -> Any:
    """An operator as a method: the tensor is its first argument."""

    @functools.wraps(operator)
    def bound(self: Any, *args: Any, **options: Any) -> Any:
        return operator(self, *args, **options)

    return bound


def reflected(operator: Any) -> Any:
    """A binary operator as the method that Python tries on its right argument."""

    @functools.wraps(operator)
    def bound(self: Any, other: Any) -> Any:
        return operator(other, self)

    return bound


def reduction(operator: Any) -> Any:
    """A reduction as a method that says `axis`, as NumPy does."""

    @functools.wraps(operator)
    def bound(
        self: Any, axis: Any = None, keepdims: bool = False, **options: Any
    ) -> Any:
        return operator(self, axes=axis, keepdims=keepdims, **options)

    return bound


def shape_from(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """Sizes that were given one by one or as one tuple, list or array."""
    if len(sizes) == 1 and not hasattr(sizes[0], "__index__"):
        sizes = tuple(sizes[0])
    return tuple(map(index, sizes))
