"""Write down what a module does, layer by layer, at one or several sizes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from burnish.autodiff import Variable
from burnish.capture import record
from burnish.capture.line import refs
from burnish.capture.tape import Call, Ref, Tape
from burnish.codegen.errors import ExportError
from burnish.codegen.writers.traced.sizes import Differ, Size, Varying, merged, sized
from burnish.codegen.writers.traced.table import find
from burnish.nn.module import Module
from burnish.nn.param import Stored
from burnish.operator import Operator


class Inside(NamedTuple):
    """A call of a module, by its path and the number of the call."""

    path: str
    module: Module
    number: int


Path = tuple[Inside, ...]
"""The modules' calls that a call was made in, outermost first."""


@dataclasses.dataclass(frozen=True)
class Done:
    """One call of a module's program."""

    function: Any
    args: tuple[Any, ...]
    options: dict[str, Any]
    results: Any
    path: Path
    always: bool

    @property
    def name(self) -> str:
        """What the call is known as."""
        if isinstance(self.function, Module):
            return f"nn.{type(self.function).__name__}"
        if isinstance(self.function, Operator):
            return self.function.name.rstrip("_")
        return str(self.function.__name__)


@dataclasses.dataclass(frozen=True)
class Recorded:
    """A module's program: its calls, the places of its arguments and results.

    stored: parameters and buffers by place, with their names; constants: other arrays.
    """

    calls: list[Done]
    arguments: list[Ref]
    results: Any
    stored: dict[int, tuple[str, Stored]]
    constants: dict[int, Any]


class LayerTape(Tape):
    """Keeps what ONNX has a word for as one call, and in which module it was made."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        self.names = {id(each): path for path, each in module.named_modules()}
        self.inside: list[Inside] = []
        self.entered = 0
        self.paths: list[Path] = []

    def keeps(self, function: Any) -> bool:
        return find(function) is not None

    def enter(
        self, module: Module, args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        if id(module) not in self.names:
            return super().enter(module, args, options)
        self.entered += 1
        self.inside.append(Inside(self.names[id(module)], module, self.entered))
        try:
            if find(module) is not None:
                return self.call(module, args, options)
            return super().enter(module, args, options)
        finally:
            self.inside.pop()

    def _write(self, function: Any, given: Any, results: Any, always: bool) -> None:
        super()._write(function, given, results, always)
        self.paths.append(tuple(self.inside))


def recorded(module: Module, args: Sequence[Any]) -> Recorded:
    """What `module(*args)` does; raises CaptureError where that depends on values."""
    tape = LayerTape(module)
    _, _, results = record(tape, module, tuple(args), {})
    kept = _alive(tape.calls, results)
    names = {id(item): path for path, item in module.named_tensors()}
    calls = [
        Done(c.function, c.args, c.options, c.results, path, c.always)
        for c, path in zip(tape.calls, tape.paths, strict=True)
        if id(c) in kept
    ]
    stored, constants = {}, {}
    for ref, value in tape.fixed.values():
        if id(value) in names:
            stored[ref.place] = (names[id(value)], value)
        else:
            constants[ref.place] = np.asarray(value.data)
    arguments = [tape.ref(each) for each in tape.arguments]
    return Recorded(calls, arguments, results, stored, constants)


def _alive(calls: list[Call], results: Any) -> set[int]:
    """The calls that a result depends on, by their id."""
    asked = {ref.place for ref in refs(results)}
    kept = set()
    for call in reversed(calls):
        if call.always or any(ref.place in asked for ref in refs(call.results)):
            asked.update(ref.place for ref in refs((call.args, call.options)))
            kept.add(id(call))
    return kept


def together(runs: Sequence[Recorded]) -> Recorded:
    """One program for all sizes; raises ExportError where there is none."""
    first = runs[0]
    calls = []
    for i, done in enumerate(first.calls):
        try:
            others = [run.calls[i] for run in runs[1:]]
            parts = [(d.name, d.args, d.options, d.results) for d in (done, *others)]
            _, args, options, results = merged(*parts)
        except (Differ, IndexError):
            raise _diverged(done) from None
        calls.append(dataclasses.replace(
            done, args=args, options=options, results=results
        ))  # fmt: skip
    if any(len(run.calls) != len(first.calls) for run in runs):
        raise _diverged(first.calls[-1])
    results = merged(*(_plain_results(run.results) for run in runs))
    constants = {
        place: merged(*(run.constants[place] for run in runs))
        for place in first.constants
    }
    given = (run.arguments for run in runs)
    arguments = [merged(*each) for each in zip(*given, strict=True)]
    return Recorded(calls, arguments, results, first.stored, constants)


def _plain_results(results: Any) -> Any:
    if isinstance(results, Variable):
        return np.asarray(results.data)
    return results


def _diverged(done: Done) -> ExportError:
    path = done.path[-1][0] if done.path else ""
    where = f"in {path}, " if path else ""
    return ExportError(
        f"export: {where}at {done.name}, the module does other things at other sizes "
        f"of its dynamic axes; export it with these sizes fixed, dynamic={{}}"
    )


__all__ = ["Done", "Recorded", "Size", "Varying", "recorded", "sized", "together"]
