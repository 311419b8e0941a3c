"""Line: one call of a program, bound to places among a run's values."""

from __future__ import annotations

import contextlib
from typing import Any

from burnish._engine.pytree import leaves, mapped
from burnish.autodiff import no_grad
from burnish.capture.ref import Ref
from burnish.capture.tape import Call
from burnish.errors import CaptureError


class Line:
    """A call whose arguments are places among a run's values.

    constants: of all lines; arguments that are none of a program's values join them.
    """

    __slots__ = (
        "args",
        "call",
        "done",
        "function",
        "options",
        "place",
        "plain",
        "shape",
    )

    def __init__(self, call: Call, constants: list[Any]):
        self.call, self.function, self.options = call, call.function, call.options
        self.done: tuple[int, ...] = ()
        self.place, self.shape = -1, None  # of its only result, if it has one
        if isinstance(call.results, Ref):
            self.place, self.shape = call.results.place, call.results.shape
        nested = [arg for arg in call.args if not isinstance(arg, Ref)]
        self.plain = not call.paused and not refs((nested, call.options))
        args = []
        for arg in call.args:
            if isinstance(arg, Ref):
                args.append(arg.place)
            else:
                args.append(len(constants))
                constants.append(arg)
        self.args = tuple(args)

    @property
    def label(self) -> str:
        """The name of the called function."""
        return str(self.function.__name__).lstrip("_")

    def run(self, values: list[Any]) -> None:
        """Make the call, and let go of what no later line asks for."""
        self.make(values)
        for place in self.done:
            values[place] = None

    def make(self, values: list[Any]) -> None:
        """Make the call; all values stay.

        Raises CaptureError for a result of another shape than in the capture: what
        follows was made for that one.
        """
        if self.plain:
            args = [values[place] for place in self.args]
            made = self.function(*args, **self.options)
        else:
            made = self._made(values)
        if self.place >= 0 and made.shape == self.shape:
            values[self.place] = made
        else:
            self.keep(values, made)

    def _made(self, values: list[Any]) -> Any:
        """The result of a call under `no_grad`, or with values in containers."""

        def filled(item: Any) -> Any:
            return values[item.place] if isinstance(item, Ref) else item

        with no_grad() if self.call.paused else contextlib.nullcontext():
            args, options = mapped((self.call.args, self.options), filled)
            return self.function(*args, **options)

    def keep(self, values: list[Any], made: Any) -> None:
        """Several results, or none; CaptureError for those that do not fit."""
        for ref, each in zip(leaves(self.call.results), leaves(made), strict=True):
            if ref is not None and each is not None and each.shape == ref.shape:
                values[ref.place] = each
            elif ref is not each:
                raise CaptureError(self._other(ref, each))

    def _other(self, ref: Ref | None, made: Any) -> str:
        was, now = (getattr(each, "shape", None) for each in (ref, made))
        return (
            f"program: {self.label} gave shape {now}, in the "
            f"capture {was}: it depends on values, and what follows was made for that"
        )


def refs(value: Any) -> list[Ref]:
    """Every place in lists, tuples and dicts."""
    return [each for each in leaves(value) if isinstance(each, Ref)]
