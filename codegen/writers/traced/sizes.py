"""Unify several captures: integers that differ become sizes.

Empirical: an integer is a size where an expression gives its values in all captures.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from burnish.capture.ref import Ref


class Size(int):
    """An integer that depends on dynamic axes, with its value in every capture.

    Arithmetic gives a Size, or a plain integer where all captures agree.
    """

    captures: tuple[int, ...]

    def __new__(cls, captures: tuple[int, ...]) -> Size:
        made = super().__new__(cls, captures[0])
        made.captures = captures
        return made

    def _with(self, other: Any, how: Callable[[int, int], int]) -> Any:
        if not isinstance(other, int):
            return NotImplemented
        return sized(*map(how, self.captures, captures_of(other, len(self.captures))))

    def __add__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a - b)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a * b)

    def __floordiv__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a // b)

    def __neg__(self) -> Any:
        return self._with(-1, lambda a, b: a * b)

    __radd__, __rmul__ = __add__, __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and self.captures == other.captures

    def __hash__(self) -> int:
        return hash(self.captures)

    def __repr__(self) -> str:
        return "|".join(map(str, self.captures))


def sized(*captures: int) -> int:
    """A plain integer where all captures agree, else a Size; None for the unknown."""
    if None in captures:
        return None  # type: ignore[return-value]
    if all(n == captures[0] for n in captures):
        return captures[0]
    return Size(tuple(map(int, captures)))


def captures_of(size: int, count: int) -> tuple[int, ...]:
    return size.captures if isinstance(size, Size) else (int(size),) * count


@dataclasses.dataclass(frozen=True)
class Varying:
    """A constant that differs between captures."""

    captures: tuple[Any, ...]


class Differ(Exception):
    """Two captures do other things."""


def merged(*items: Any) -> Any:
    """Unify the values of several captures; integers that differ become Size.

    Raises Differ where they are not of one kind.
    """
    first = items[0]
    if any(type(item) is not type(first) for item in items):
        raise Differ
    if isinstance(first, Ref):
        return _merged_refs(items)
    if isinstance(first, list | tuple):
        if any(len(item) != len(first) for item in items):
            raise Differ
        made = [merged(*parts) for parts in zip(*items, strict=True)]
        return type(first)(*made) if hasattr(first, "_fields") else type(first)(made)
    if isinstance(first, dict):
        if any(item.keys() != first.keys() for item in items):
            raise Differ
        return {key: merged(*(item[key] for item in items)) for key in first}
    if isinstance(first, slice):
        return slice(*merged(*((i.start, i.stop, i.step) for i in items)))
    return _merged_values(items)


def _merged_values(items: tuple[Any, ...]) -> Any:
    first = items[0]
    if isinstance(first, np.ndarray):
        same = all(
            item.shape == first.shape and item.tobytes() == first.tobytes()
            for item in items
        )
        return first if same else Varying(items)
    if all(item is first or item == first for item in items):
        return first
    if isinstance(first, int) and not isinstance(first, bool):
        return sized(*items)
    if not isinstance(first, float):
        raise Differ
    return Varying(items)


def _merged_refs(refs: tuple[Ref, ...]) -> Ref:
    first = refs[0]
    same = all(
        ref.place == first.place
        and ref.dtype == first.dtype
        and len(ref.shape) == len(first.shape)
        for ref in refs
    )
    if not same:
        raise Differ
    shape = tuple(sized(*sizes) for sizes in zip(*(r.shape for r in refs), strict=True))
    return Ref(first.place, shape, first.dtype)
