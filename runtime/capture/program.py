"""Program: the result of a capture, to be run and to be read."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from burnish.autodiff import Variable
from burnish.capture.late import reader
from burnish.capture.line import Line, refs
from burnish.capture.listing import listing
from burnish.capture.ref import Ref
from burnish.capture.signature import Kind, difference, fits, form_of, named
from burnish.capture.tape import Call, Tape
from burnish.capture.watch import Watch
from burnish.errors import CaptureError
from burnish.kernels.same import Same


class Program:
    """The calls of a captured function; `program(*tensors)` makes them again.

    It gives what the function gives, to the last bit, and is differentiated as it is.
    Arguments are tensors of the shapes, dtypes and devices of the capture; numbers and
    words among them are those of the capture. `print(program)` lists its calls.

    form, names: the arguments of the capture; results: of refs. watch: what else the
    function read.
    """

    def __init__(
        self,
        name: str,
        form: Any,
        names: list[str],
        tape: Tape,
        results: Any,
        watch: Watch,
    ):
        self.name, self.results = name, results
        self.arguments = named(form, names)
        self._form, self._names, self._watch = form, names, watch
        self._values: list[Any] = [None] * tape.places
        self.stored: dict[int, str] = {}
        for ref, value in tape.fixed.values():
            self._values[ref.place] = value
            if id(value) in tape.stored:
                self.stored[ref.place] = watch.path(value)
        self.replace(tape.calls, tape.places)

    def replace(self, calls: list[Call], places: int) -> None:
        """Replace the calls; the program's results stay the same values.

        places: how many places of values there are then.
        """
        self._values += [None] * (places - len(self._values))
        known = set(self.fixed)
        calls, _ = alive(calls, self.results)
        self.lines = [Line(call, self._values) for call in calls]
        _let_go(self.lines, self.results, known)

    @property
    def places(self) -> int:
        """The number of places of values, constants included."""
        return len(self._values)

    @property
    def takes(self) -> int:
        """The number of tensors it is called with."""
        return sum(isinstance(each, Kind) for each in self.arguments.values())

    @functools.cached_property
    def has_effects(self) -> bool:
        """Whether a run does more than to give results: it draws, or assigns."""
        return any(line.call.always for line in self.lines)

    @property
    def fixed(self) -> dict[int, Variable]:
        """Parameters, buffers and tensors from outside, by their place."""
        return {
            place: each
            for place, each in enumerate(self._values)
            if isinstance(each, Variable)
        }

    def values(self, given: list[Any]) -> list[Any]:
        """The values that its lines run on: arguments, constants and empty places."""
        values = self._values.copy()
        values[: len(given)] = given
        return values

    def check(self) -> None:
        """Raises CaptureError where a module has changed since the capture."""
        self._watch.check()

    @property
    def looks(self) -> tuple[Same, ...] | None:
        """What `check` looks at, if that is all that it would do; None where not."""
        return self._watch.looks

    @functools.cached_property
    def filled(self) -> Callable[[Any], Any]:
        """A function: the results, out of what its lines have made."""
        return reader(self.results)

    @property
    def watched(self) -> dict[str, Any]:
        """The modules that have to stay as they are."""
        return self._watch.modules

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Raises CaptureError for other arguments, or a module that has changed."""
        given = list(args)
        if options or self._form[1] or not fits(args, self._form[0]):
            given = self._tensors(args, options)
        self._watch.check()
        values = self.values(given)
        for line in self.lines:
            line.run(values)
        return self.filled(values)

    def _tensors(self, args: tuple[Any, ...], options: dict[str, Any]) -> list[Any]:
        """The tensors among the arguments; CaptureError for others than captured."""
        given: list[Variable] = []
        form = form_of((args, options), given)
        if form != self._form:
            problem = difference(self.arguments, named(form, self._names))
            raise CaptureError(
                f"program {self.name}: {problem}; capture it for these too"
            )
        return given

    def __len__(self) -> int:
        """The number of calls it makes."""
        return len(self.lines)

    def __repr__(self) -> str:
        return f"<program {self.name}: {len(self)} calls>"

    def __str__(self) -> str:
        return listing(self)


def alive(calls: list[Call], results: Any) -> tuple[list[Call], dict[int, Ref]]:
    """The calls that results or effects depend on, and what these read from before."""
    asked = {ref.place: ref for ref in refs(results)}
    kept = []
    for call in reversed(calls):
        made = refs(call.results)
        if call.always or any(ref.place in asked for ref in made):
            for ref in made:
                asked.pop(ref.place, None)
            asked.update({ref.place: ref for ref in refs((call.args, call.options))})
            kept.append(call)
    return kept[::-1], asked


def _let_go(lines: list[Line], results: Any, fixed: set[int]) -> None:
    """Tell every line which values are dead after it."""
    kept = {ref.place for ref in refs(results)} | fixed
    for line in reversed(lines):
        call = line.call
        used = {ref.place for ref in refs((call.args, call.options, call.results))}
        line.done = tuple(sorted(used - kept))
        kept |= used
