"""The tape: records every tensor operation of a function during capture."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from burnish._engine.pytree import leaves, mapped
from burnish.autodiff import Variable, recording
from burnish.capture.dependencies import Dependencies
from burnish.capture.late import Late, Unmade
from burnish.capture.reach import Reads
from burnish.capture.ref import Ref
from burnish.capture.traced import Traced
from burnish.capture.where import refusal
from burnish.errors import CaptureError
from burnish.nn.core.calling import forwarded
from burnish.nn.core.module import Module
from burnish.nn.core.param import Stored
from burnish.tensor import Tensor


class Call(NamedTuple):
    """One line: a function of values, and where what it gives is kept.

    paused: it was made under `no_grad`. always: it acts also where nobody uses what it
    gives, as a draw or an assignment does.
    """

    function: Any
    args: tuple[Any, ...]
    options: dict[str, Any]
    results: Any
    paused: bool
    always: bool


class Tape(Dependencies):
    """Writes calls down; values that depend on arguments or parameters are `Traced`."""

    follows = False  #: whether `way` says which way an `if` goes
    is_step = False  #: whether it writes down gradients and updates too
    reads: Reads  #: what the function read, in Python, before

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.places = 0
        self.fixed: dict[int, tuple[Ref, Any]] = {}
        self.arguments: list[Any] = []
        self.over = self.has_late = False
        self.refused = ""  # why, should the function catch the exception
        self._before: dict[int, tuple[Stored, Any]] = {}
        self._paused = recording.paused
        self._inside = self._drew = False

    # --- what the function meets ---

    def argument(self, real: Variable) -> Any:
        """An argument, as the function gets it."""
        self.arguments.append(Traced(real, self.new_place(), self))
        return self.arguments[-1]

    def plain(self, item: Any) -> Any:
        """An argument that is no tensor, as the function gets it."""
        return item

    def call(
        self,
        function: Any,
        args: tuple[Any, ...],
        options: dict[str, Any],
        always: bool = False,
    ) -> Any:
        """`function(*args, **options)`, written down unless it is constant."""
        self._see(args)
        if not (always or any(map(_lives, leaves((args, options))))):
            with self._running(inside=False):
                return function(*args, **options)
        real_args, real_options = mapped((args, options), self._real)
        with self._running(inside=True):
            made = function(*real_args, **real_options)
        results = mapped(made, lambda each: self._result(function, each))
        self._write(function, (args, options), results, always or self._drew)
        return results

    def late(self, function: Any, *args: Any, **options: Any) -> Any:
        """What `function` makes of tensors on the host, which can only be returned."""
        late = Late(function, *mapped((args, options), self.ref))
        self.has_late = True
        return Unmade(self, late)

    def keeps(self, function: Any) -> bool:
        """Whether a function that is made of operators is one call, as it is."""
        return False

    def enter(
        self, module: Module, args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        """The module's result; the calls of its `forward` are recorded."""
        return forwarded(module, args, options)

    def assign(self, stored: Stored, value: Any, dtype: Any) -> None:
        """A parameter's or buffer's new value: for this run only, but in each later."""
        with self._running(inside=True):
            if id(stored) not in self._before:
                self._before[id(stored)] = (stored, stored.held)
            stored.assign(self._real(value), dtype)
        self._write(_assign, ((stored, value), {"dtype": dtype}), None, True)

    def backward(self, output: Any, gradient: Any, create_graph: bool) -> Any:
        """Raises CaptureError: a program is differentiated from outside."""
        self.refuse("backward() of what a program gives is for outside of it")

    def rate(self, schedule: Any) -> NoReturn:
        """Raises CaptureError: a schedule's rate would be the same in every run."""
        self.refuse("a schedule's step would be the same in every run; pass its rate")

    def settled(self, stored: Stored) -> Any:
        """The array of a buffer that holds settings, which are to stay."""
        with self._running(inside=True):
            return self.note_array(stored)

    def way(self, tensor: Variable) -> bool:
        """The truth of a tensor for `if` and `while`, where this tape `follows`."""
        self.read(tensor)

    def rounds(self, tensor: Variable) -> int | None:
        """A tensor's value for `range`; None where no `range` asks for it."""
        return None

    def refuse(self, why: str, what_to_do: str = "") -> NoReturn:
        """Raises CaptureError: says where and why."""
        self.refused = refusal(why) + what_to_do
        raise CaptureError(self.refused)

    def read(self, tensor: Variable) -> NoReturn:
        """Raises CaptureError: what Python makes of values would stay as it is now."""
        kind = "tensor" if isinstance(tensor, Traced) else type(tensor).__name__
        self.refuse(
            f"expected operators alone, got a look at the values of a {kind} "
            f"{tensor.shape}",
            "; choose with ops.where, or capture what comes before and after",
        )

    # --- the capture's beginning and end ---

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """In the `with` block this thread's calls are written down.

        At its end parameters and buffers are what they were.
        """
        recording.tape = self
        try:
            yield
        finally:
            recording.tape = None
            self.over = True
            for stored, before in self._before.values():
                stored.assign(before)

    def drawing(self) -> None:
        """Called at every draw: only a recorded call may draw."""
        if not self._inside:
            self.refuse(
                "random numbers are drawn outside of an operator, and would be the "
                "same in every run; draw them with Tensor.rand, randn or random, or "
                "pass them as an argument"
            )
        self._drew = True

    def ref(self, value: Any) -> Any:
        """The place of a tensor or an array; anything else as it is."""
        if isinstance(value, Traced):
            return Ref(value.place, tuple(value.shape), value.dtype)
        if not isinstance(value, Variable):
            return value
        if id(value) not in self.fixed:
            ref = Ref(self.new_place(), tuple(value.shape), value.dtype)
            self.fixed[id(value)] = (ref, value)
            if isinstance(value, Stored):
                self.stored[id(value)] = value
        return self.fixed[id(value)][0]

    # --- how ---

    @contextlib.contextmanager
    def _running(self, inside: bool) -> Iterator[None]:
        """The call itself; calls within it are not recorded."""
        before, recording.tape = recording.tape, None
        self._inside, self._drew = inside, False
        try:
            yield
        finally:
            recording.tape, self._inside = before, False

    def _write(self, function: Any, given: Any, results: Any, always: bool) -> None:
        args, options = mapped(given, self.ref)
        paused = recording.paused and not self._paused
        made = mapped(results, self.ref)
        always = always or made is None
        self.calls.append(Call(function, args, options, made, paused, always))

    def _result(self, function: Any, made: Any) -> Any:
        """A call's result, as the captured function continues with it."""
        if made is not None and not hasattr(made, "dtype"):
            self.refuse(
                f"expected arrays of {function.__name__}, got {made!r}, which would "
                f"be the same in every run"
            )
        return None if made is None else Traced(made, self.new_place(), self)

    def _real(self, value: Any) -> Any:
        if not isinstance(value, Traced):
            return value
        if value.tape is not self:
            self.refuse("a tensor of another capture is used")
        return value.real

    def _see(self, args: tuple[Any, ...]) -> None:
        """Remember the constants, to tell later whether `inplace` has changed one."""
        for arg in args:
            if type(arg) is Tensor:
                self.note_array(arg)

    def new_place(self) -> int:
        """The index of one more value."""
        self.places += 1
        return self.places - 1


def _lives(value: Any) -> bool:
    """Whether a value may be another one the next time."""
    return isinstance(value, Traced | Stored)


def _assign(stored: Stored, value: Any, *, dtype: Any) -> None:
    stored.assign(value, dtype)
