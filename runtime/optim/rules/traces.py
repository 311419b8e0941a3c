"""Traces of an optimizer's formula on symbols, reused from step to step.

A formula runs on symbols, its count of steps and its rate being scalars. The constants
that depend on these two are computed again for another step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import lru_cache
from types import CodeType
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from burnish import rng
from burnish.backend.symbols import Script
from burnish.optim.rules.reads import reads_of
from burnish.optim.rules.scalars import Scalar, Scalars

T = TypeVar("T", covariant=True)
V = TypeVar("V")


class Trace(Protocol[T]):
    """What a formula is for every step that it branches alike for."""

    def at(self, step: int, rate: float) -> T | None:
        """The same with the numbers of a step; None where it is another formula."""


class Recording(Script):
    """A script whose constants may be scalars.

    scalars: the places of scalars, by their constants.
    """

    def __init__(self, dtype: Any):
        super().__init__(dtype, named=True)
        self.scalars: dict[int, int] = {}

    def operand(self, value: Any) -> str:
        if isinstance(value, Scalar):
            value = self.scalar(value)
        return super().operand(value)

    def scalar(self, value: Scalar) -> Any:
        """The number of a scalar that is the next constant."""
        self.scalars[len(self.constants)] = value.place
        return value.value


def recorded(
    make: Callable[[Scalars, Any, Any], V | None], step: int, rate: float
) -> V | None:
    """make(scalars, step, rate) with scalars; where that is None, with the numbers.

    Some functions of Python take numbers alone.
    """
    scalars = Scalars(step, rate)
    made = make(scalars, *scalars.given)
    if made is None:
        scalars.fix()
        made = make(scalars, step, rate)
    return made


class Traces(Generic[T]):
    """The latest traces of a rule, while its options stay the same.

    make(write, slots, step, rate): the trace of a rule's `write`.
    """

    _MOST = 4

    def __init__(
        self, make: Callable[[Any, Sequence[str], int, float], Trace[T] | None]
    ):
        self._make = make
        self._options: Any = None
        self._known: list[Trace[T]] = []

    def at(self, rule: Any, step: int, rate: float) -> T | None:
        """What the rule is at a step; traces it where no known trace says."""
        options = _options(rule)
        if options is None or options != self._options:
            self._options, self._known = options, []
        for trace in self._known:
            if (found := trace.at(step, rate)) is not None:
                rest = [each for each in self._known if each is not trace]
                self._known = [trace, *rest]
                return found
        before = rng.state()
        made, again = (self._make(rule.write, rule.slots(), step, rate) for _ in "ab")
        rng.restore(before)
        if made is None or again is None:
            return None
        found = made.at(step, rate)
        if not _is_same(found, again.at(step, rate)):
            return None  # it draws random numbers, or counts
        self._known = [made, *self._known[: self._MOST - 1]]
        return found


def _options(rule: Any) -> dict[str, Any] | None:
    """What a formula reads of its rule; None where that may change unseen."""
    kind: Any = type(rule)
    own = _own(kind)
    values = {name: getattr(kind, name, None) for name in _of_class(kind)}
    found = {
        name: tuple(value) if type(value) is list else value
        for name, value in (values | vars(rule)).items()
        if name not in own or _is_plain(value)
    }
    found["its reads"] = reads_of(kind)
    return found if all(map(_is_plain, found.values())) else None


def _is_same(one: Any, other: Any) -> bool:
    """Whether two traces are of one formula, number by number."""
    if isinstance(one, dict) and isinstance(other, dict):
        same = one.keys() == other.keys()
        return same and all(np.array_equal(one[key], other[key]) for key in one)
    return bool(one == other)


@lru_cache(64)
def _own(kind: type) -> frozenset[str]:
    """The fields of a rule that are no options of it: its state, and `clip`."""
    hidden = {f.name for f in fields(kind) if not f.init and not f.repr}
    return frozenset(hidden | {"clip"})


@lru_cache(64)
def _of_class(kind: type) -> frozenset[str]:
    """The attributes of a rule's class that are no methods, properties or fields."""
    names = {
        name
        for each in kind.__mro__
        for name, value in vars(each).items()
        if name[:2] != "__" and not hasattr(value, "__get__")
    }
    return frozenset(names - {f.name for f in fields(kind)})


def _is_plain(value: Any) -> bool:
    """Whether a value cannot change."""
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return isinstance(value, _PLAIN)


_PLAIN = (type(None), bool, int, float, str, np.number, CodeType)
