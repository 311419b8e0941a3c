"""Traced: a tensor of a captured function; it has no values, only a place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burnish.autodiff import Variable
from burnish.backend import Device
from burnish.errors import CaptureError, InputError
from burnish.tensor import Tensor


class Traced(Tensor):
    """A placeholder for a value that differs in every run of the program.

    real: what it is in this run, a tensor, or an array that a step gave.
    """

    __slots__ = ("place", "real", "tape")

    real: Any
    place: int
    tape: Any

    def __init__(self, real: Any, place: int, tape: Any):
        self._set(real, place, tape)

    def _set(self, real: Any, place: int, tape: Any) -> None:
        self.real, self.place, self.tape = real, place, tape
        is_tensor = isinstance(real, Variable)
        self.device = real.device if is_tensor else Device.of(real)
        self.node = real.node if is_tensor else None
        self.index = real.index if is_tensor else 0

    @property
    def data(self) -> Any:
        if self.tape.over:
            raise CaptureError(f"capture: {self!r} is of a capture that is over")
        self.tape.read(self)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.real.shape)

    @property
    def dtype(self) -> Any:
        return self.real.dtype

    def item(self) -> Any:
        if self.tape.follows and (count := self.tape.rounds(self)) is not None:
            return count
        return super().item()

    def inplace(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        if any(self is each for each in self.tape.arguments):
            self.tape.refuse("an argument is changed by inplace()")
        made = function(Traced(self.real, self.place, self.tape))
        if not isinstance(made, Traced):
            raise InputError(
                f"inplace: expected a function of its tensor, got {type(made).__name__}"
            )
        self._set(made.real, made.place, made.tape)
        return self

    def __repr__(self) -> str:
        return f"Tensor(without values, {self.shape}, {self.dtype}, '{self.device}')"

    def __format__(self, spec: str) -> str:
        return repr(self)
