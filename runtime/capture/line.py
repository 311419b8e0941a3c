"""Line: one call of a program, as it is made in every run."""

from __future__ import annotations

from typing import Any

from burnish.autodiff import no_grad
from burnish.capture.tape import Call, Ref
from burnish.errors import CaptureError
from burnish.nested import leaves, mapped


class Line:
    """A call whose arguments are places among a run's values.

    constants: of all lines; arguments that are none of a program's values join them.
    """

    __slots__ = ("args", "call", "done", "function", "nested", "options", "single")

    def __init__(self, call: Call, constants: list[Any]):
        self.call, self.function, self.options = call, call.function, call.options
        self.single = call.results if isinstance(call.results, Ref) else None
        self.nested = bool(refs(call.options))
        self.done: tuple[int, ...] = ()
        args = []
        for arg in call.args:
            if isinstance(arg, Ref):
                args.append(arg.place)
                continue
            self.nested = self.nested or bool(refs(arg))
            args.append(len(constants))
            constants.append(arg)
        self.args = tuple(args)

    def run(self, values: list[Any]) -> None:
        """Make the call, and let go of what no later line asks for.

        Raises CaptureError for a result of another shape than in the capture: what
        follows was made for that one.
        """
        if self.call.paused:
            with no_grad():
                made = self._made(values)
        else:
            made = self._made(values)
        if self.single is not None:
            self._keep(values, self.single, made)
        else:
            for ref, each in zip(leaves(self.call.results), leaves(made), strict=True):
                self._keep(values, ref, each)
        for place in self.done:
            values[place] = None

    def _made(self, values: list[Any]) -> Any:
        if not self.nested:
            return self.function(
                *[values[place] for place in self.args], **self.options
            )

        def filled(item: Any) -> Any:
            return values[item.place] if isinstance(item, Ref) else item

        args = mapped(self.call.args, filled)
        return self.function(*args, **mapped(self.options, filled))

    def _keep(self, values: list[Any], ref: Ref | None, made: Any) -> None:
        if ref is not None and made is not None and made.shape == ref.shape:
            values[ref.place] = made
        elif ref is not made:
            name = self.function.__name__.lstrip("_")
            raise CaptureError(
                f"program: {name} gave shape {getattr(made, 'shape', None)}, in the "
                f"capture {ref and ref.shape}: it depends on values, and what follows "
                f"was made for that one"
            )


def refs(value: Any) -> list[Ref]:
    """Every place in lists, tuples and dicts."""
    return [each for each in leaves(value) if isinstance(each, Ref)]
