"""Scalars: numbers of a formula as expressions of the count of steps and the rate.

They compute with Python's numbers and record how, so that the same is computed for
another step. Where Python needs the number itself, to branch or to look up an item, the
recording holds for this number alone.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np


class Scalars:
    """The scalars of one formula; given: those of a count of steps and of a rate."""

    def __init__(self, step: int, rate: float):
        self._values: list[Any] = [step, rate]  # constants keep theirs
        self._lines: list[tuple[int, Callable[..., Any], tuple[int, ...]]] = []
        self._fixed: dict[int, Any] = {}  # numbers that Python has seen, by place
        self.given = Scalar(self, 0), Scalar(self, 1)

    def at(self, step: int, rate: float) -> list[Any] | None:
        """The values of all for another step; None where Python goes another way."""
        values = [step, rate, *self._values[2:]]
        try:
            for place, function, args in self._lines:
                values[place] = function(*[values[arg] for arg in args])
        except (ArithmeticError, TypeError, ValueError):
            return None
        is_same = all(values[place] == seen for place, seen in self._fixed.items())
        return values if is_same else None

    def made(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Scalar:
        """The scalar that a function gives for scalars and numbers."""
        places = tuple(map(self._place, args))
        value = function(*[self._values[place] for place in places])
        self._lines.append((len(self._values), function, places))
        return Scalar(self, self._kept(value))

    def seen(self, place: int) -> Any:
        """A value that Python goes by."""
        self._fixed[place] = self._values[place]
        return self._values[place]

    def value(self, place: int) -> Any:
        """A value of the step that is recorded."""
        return self._values[place]

    def fix(self) -> None:
        """Hold for this step and rate alone."""
        self._fixed = {0: self._values[0], 1: self._values[1]}

    def _place(self, value: Any) -> int:
        return value.place if isinstance(value, Scalar) else self._kept(value)

    def _kept(self, value: Any) -> int:
        self._values.append(value)
        return len(self._values) - 1


class Scalar:
    """A number that depends on the count of steps or on the rate."""

    __slots__ = ("place", "scalars")
    __array_ufunc__ = None  # NumPy's scalars leave arithmetic to it

    def __init__(self, scalars: Scalars, place: int):
        self.scalars, self.place = scalars, place

    @property
    def value(self) -> Any:
        """The number at the step that is recorded."""
        return self.scalars.value(self.place)

    def __bool__(self) -> bool:
        return bool(self.scalars.seen(self.place))

    def __float__(self) -> float:
        return float(self.scalars.seen(self.place))

    def __int__(self) -> int:
        return int(self.scalars.seen(self.place))

    def __index__(self) -> int:
        return operator.index(self.scalars.seen(self.place))

    __hash__ = None  # type: ignore[assignment]  # == is an expression


def _operators() -> None:
    def one(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda a: a.scalars.made(function, (a,))

    def two(function: Callable[..., Any], is_turned: bool) -> Callable[..., Any]:
        def call(a: Scalar, b: Any) -> Any:
            if not isinstance(b, Scalar | int | float | np.number):
                return NotImplemented
            return a.scalars.made(function, (b, a) if is_turned else (a, b))

        return call

    for name in ("neg", "pos", "abs"):
        setattr(Scalar, f"__{name}__", one(getattr(operator, name)))
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
        setattr(Scalar, f"__{name}__", two(getattr(operator, name), False))
        setattr(Scalar, f"__r{name}__", two(getattr(operator, name), True))
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(Scalar, f"__{name}__", two(getattr(operator, name), False))


_operators()
