"""Kernel arguments of captured launches that the host updates before each replay."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from burnish.backend.cuda.kernels import by_value, kernel

_MOST = 480  # words that one launch brings: kernels take 4 KB of arguments
_LAUNCHES = 16


class Live:
    """A number of Python that may be another one in each launch.

    It is worth `value`. Whoever computes with it gets plain numbers, which a capture
    would keep: `is_read` tells so.
    """

    __slots__ = ("check", "is_read", "value")

    def __init__(self, value: float, check: Callable[[float], Any] = float):
        self.value, self.is_read, self.check = value, False, check

    def __float__(self) -> float:
        self.is_read = True
        return float(self.value)

    def __getattr__(self, name: str) -> Any:
        return getattr(float(self), name)

    def __repr__(self) -> str:
        return repr(float(self))

    def __hash__(self) -> int:
        return hash(float(self))

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """float, for `isinstance`: code that computes with it takes a float."""
        return float


def _computed(name: str) -> Any:
    def method(self: Live, *others: Any) -> Any:
        given = [float(x) if type(x) is Live else x for x in others]
        was_read, made = self.is_read, getattr(float(self), name)(*given)
        if made is NotImplemented:  # a tensor may compute with it as it is
            self.is_read = was_read
        return made

    return method


for _name in (
    *(
        f"__{side}{name}__"
        for side in ("", "r")
        for name in (
            "add",
            "sub",
            "mul",
            "truediv",
            "floordiv",
            "mod",
            "pow",
            "divmod",
        )
    ),
    *(
        f"__{name}__"
        for name in (
            "eq",
            "ne",
            "lt",
            "le",
            "gt",
            "ge",
            "bool",
            "int",
            "neg",
            "pos",
            "abs",
            "round",
            "trunc",
            "floor",
            "ceil",
            "str",
            "format",
        )
    ),
):
    setattr(Live, _name, _computed(_name))


def value_of(number: Any) -> Any:
    """The number's value for this launch, checked as its reader expects it."""
    return number.check(number.value) if type(number) is Live else number


class Numbers:
    """The host's numbers that a captured call reads: memory filled at each launch.

    checks: whether what is captured is still what would be launched. own: where the
    arrays are that optimizers may write to in place. skips: says which launches change
    nothing; None where all do.
    """

    def __init__(self) -> None:
        import cupy

        self._memory = cupy.zeros(_MOST * _LAUNCHES, np.uint64)
        self._host = np.zeros(_MOST * _LAUNCHES, np.uint64)
        self._makers: list[tuple[slice, Callable[[], Any]]] = []
        self._end = 0
        self.checks: list[Callable[[], bool]] = []
        self.own: frozenset[int] = frozenset()
        self.skips: Any = None

    def place(self, make: Callable[[], Any], count: int) -> Any:
        """Where `make()`, `count` numbers of 8 bytes each, will be for every launch."""
        start, self._end = self._end, self._end + count
        if self._end > len(self._host):
            raise RuntimeError("a capture asks for too many numbers of the host")
        self._makers.append((slice(start, self._end), make))
        return self._memory[start : self._end]

    def upload(self) -> None:
        """Fill every place, on the current stream: as arguments of a kernel."""
        for where, make in self._makers:
            self._host[where] = np.asarray(make()).view(np.uint64)
        for start in range(0, self._end, _MOST):
            words = self._host[start : start + _MOST].copy()
            given = (self._memory[start:], by_value(words), self._end - start)
            kernel("numbers", most=_MOST)((1,), (_MOST,), given)


class _Held(threading.local):
    numbers: Numbers | None = None


_held = _Held()


def numbers() -> Numbers | None:
    """The places of this thread's current capture; None outside of one."""
    return _held.numbers


@contextlib.contextmanager
def kept_in(places: Numbers) -> Iterator[None]:
    """In the `with` block launches of this thread read their numbers from `places`."""
    _held.numbers = places
    try:
        yield
    finally:
        _held.numbers = None
