"""GraphPlan: a program's calls as CUDA graphs, and calls between that run eagerly.

One capture of the whole is tried. A call that cannot be in it, because it waits for the
GPU, ends a graph, runs eagerly, and the next graph begins. Arguments are copied to
where the graphs read them, results from where they write; what is between is in memory
that the plans of one function share.
"""

from __future__ import annotations

import dataclasses
import operator
from typing import Any

from burnish import rng
from burnish.autodiff import Variable
from burnish.backend.cuda.graphs import graphs
from burnish.capture import CaptureError, Program
from burnish.capture.line import refs
from burnish.nn.core.param import Stored, version
from burnish.ops._shapes import plain
from burnish.plan.cuda.units.units import Unit, units
from burnish.plan.graph import assigned

_TIMES = 10
"""How often a unit is repeated in the graph that times it."""


@dataclasses.dataclass(slots=True)
class Stretch:
    """Units as one graph; or one that runs eagerly, and why.

    given: places that a later graph reads, and the arrays that it reads them from.
    """

    units: list[Unit]
    graph: Any = None
    why: str = ""
    given: list[tuple[int, Any]] = dataclasses.field(default_factory=list)


class Reshaped(CaptureError):
    """A call between graphs gave another shape: it depends on values."""


class GraphPlan:
    """A program's CUDA graphs for arguments of one kind; called with its tensors."""

    def __init__(self, program: Program, room: graphs.Room, given: list[Any]):
        self.program, self._room = program, room
        self.by_value = False  # whether whole numbers of the call are part of it
        self._sources = _sources(program)
        self._results = {ref.place for ref in refs(program.results)}
        self._assigned = assigned(program)
        self.units = units(program, room.kept, room.precision)
        self._half = self.units[0].half if self.units else None
        self.stretches: list[Stretch] = []
        self._seen: list[Any] = []
        self._build(given)

    @property
    def eager(self) -> list[tuple[Unit, str]]:
        """The units that run eagerly, and why."""
        return [(s.units[0], s.why) for s in self.stretches if s.graph is None]

    @property
    def summary(self) -> str:
        """Its parts, in words."""
        made = [
            stretch.graph for stretch in self.stretches if stretch.graph is not None
        ]
        launches = sum(map(graphs.launches, made))
        return f"{len(made)} CUDA graphs, {launches} launches, {self._room.precision}"

    @property
    def nbytes(self) -> int:
        """The memory that it shares with other plans of its function."""
        return self._room.nbytes

    def checked(self, given: list[Any]) -> Any:
        """The results; raises CaptureError where a module is not what it was.

        The GPU is at work while that is looked at, if it can do no harm.
        """
        program = self.program
        if program.has_effects:
            program.check()
            return self(given)
        made = self(given)
        program.check()
        return made

    def __call__(self, given: list[Any]) -> Any:
        """The results for the program's tensors; raises Reshaped."""
        with self._room.running():
            if not all(map(operator.is_, map(version, self._sources), self._seen)):
                self._build(given)
            for target, tensor in zip(self._inputs, given, strict=True):
                graphs.copied_into(target, tensor.data)
            values = self._values.copy()
            values[: len(given)] = given
            for stretch in self.stretches:
                if stretch.graph is not None:
                    stretch.graph.launch()
                    continue
                self._run(stretch.units[0], values)
                for place, target in stretch.given:
                    graphs.copied_into(target, plain(values[place]))
            for place in self._made:
                values[place] = self._result(place, values[place])
            return self.program.filled(values)

    def _result(self, place: int, made: Any) -> Any:
        """A result that no later run writes to."""
        wide = made if self._half is None else self._half.widened(place, made)
        return copied(made) if wide is made else wide

    def _run(self, unit: Unit, values: list[Any]) -> None:
        try:
            unit.make(values)
        except CaptureError as error:
            raise Reshaped(str(error)) from None

    def seconds(self, given: list[Any]) -> list[float]:
        """The GPU time of each unit, in a graph of its own."""
        found = []
        with (
            self._room.building(),
            self._room.computing(),
            _Undone(self.program),
        ):
            values = self.program.values([copied(tensor) for tensor in given])
            for unit in self.units:
                unit.make(values)

                def work(unit: Unit = unit) -> None:
                    for _ in range(_TIMES):
                        unit.make(values)

                before = values.copy()
                try:
                    graph = self._room.captured(work)
                except Exception:  # it runs eagerly
                    found.append(0.0)
                else:
                    found.append(graphs.seconds(graph, 3) / _TIMES)
                values[:] = before
        return found

    # --- how it is made ---

    def _build(self, given: list[Any]) -> None:
        """Make the graphs, for the parameters that there are now."""
        program, room = self.program, self._room
        with room.building(), room.computing(), _Undone(program):
            values = program.values(given)
            if self._half is not None:
                self._half.is_tried = True
            for unit in self.units:  # compiles kernels, fills constants
                unit.run(values)
            if self._half is not None:
                self._half.is_tried = False
            self._seen = [version(source) for source in self._sources]
            with room.allocating():
                inputs = [copied(tensor) for tensor in given]
            self._inputs = [tensor.data for tensor in inputs]
            self.stretches, self._values = [], program.values(inputs)
            self._kept: dict[int, Any] = {}
            first = 0
            while first < len(self.units):
                behind, why = self._captured(first)
                if behind < len(self.units):
                    self._as_it_is(self.units[behind], why)
                first = behind + 1
            for place, value in self._kept.items():
                self._values[place] = value
            for place in self._results & set(program.fixed):  # given as they are
                self._values[place] = program.fixed[place]
        if not any(stretch.graph for stretch in self.stretches):
            why = next((each.why for each in self.stretches), "there is none")
            raise CaptureError(f"no call can be in a CUDA graph: {why}")
        inside, fixed = range(program.takes), program.fixed
        self._made = [p for p in self._results if p not in inside and p not in fixed]

    def _captured(self, first: int) -> tuple[int, str]:
        """Make a graph of the units from the first on, as far as that goes.

        Returns the number of the unit behind it, and why that one is not in it.
        """
        units, room, why = self.units, self._room, ""
        behind = first
        while behind < len(units) and not (why := self._reason(units[behind])):
            behind += 1
        while behind > first:
            values, reached = self._values.copy(), first

            def work(end: int = behind, values: list[Any] = values) -> None:
                nonlocal reached
                for reached in range(first, end):
                    units[reached].run(values)
                    self._lie_together(units[reached], values)

            try:
                graph = room.captured(work)
            except Exception as error:  # the unit that raised runs eagerly
                behind, why = reached, (str(error) or repr(error)).splitlines()[0]
                continue
            self._values = values
            self.stretches.append(Stretch(units[first:behind], graph))
            graph.launch()
            break
        return behind, why

    def _reason(self, unit: Unit) -> str:
        """Why no graph can have a unit; "" where one may."""
        if unit.always:
            return "it draws, or gives a parameter or buffer other values"
        if any(id(self._values[ref.place]) in self._assigned for ref in unit.reads):
            return "it reads what the function gives other values"
        return ""

    def _lie_together(self, unit: Unit, values: list[Any]) -> None:
        """Make results that have to be copied contiguous."""
        for ref in unit.gives:
            if ref.place in self._results:
                array = plain(values[ref.place])
                values[ref.place] = _like(values[ref.place], graphs.contiguous(array))

    def _as_it_is(self, unit: Unit, why: str) -> None:
        values = self._values
        for ref in unit.reads:
            self._kept[ref.place] = values[ref.place]
        unit.make(values)
        stretch = Stretch([unit], why=why)
        with self._room.allocating():
            made = [ref for ref in unit.gives if values[ref.place] is not None]
            for ref in made:
                values[ref.place] = copied(values[ref.place])
                stretch.given.append((ref.place, plain(values[ref.place])))
        self.stretches.append(stretch)


class _Undone:
    """At the end of the `with` block draws and parameters are where they were."""

    def __init__(self, program: Program):
        changed = assigned(program)
        self._held = [
            item
            for item in program.fixed.values()
            if isinstance(item, Stored) and id(item) in changed
        ]

    def __enter__(self) -> None:
        self._state = rng.state()
        self._before = [item.held for item in self._held]

    def __exit__(self, *error: object) -> None:
        rng.restore(self._state)
        for item, before in zip(self._held, self._before, strict=True):
            item.assign(before)


def _sources(program: Program) -> list[Stored]:
    """Every parameter and buffer whose array a graph may read."""
    found = {id(i): i for i in program.fixed.values() if isinstance(i, Stored)}
    for module in program.watched.values():
        found |= {id(item): item for _, item in module.named_tensors()}
    changed = assigned(program)
    return [item for item in found.values() if id(item) not in changed]


def _like(made: Any, array: Any) -> Any:
    """An array as a line's result: a tensor on the same device, or an array."""
    if isinstance(made, Variable):
        return type(made).wrap(array, made.device)
    return array


def copied(made: Any) -> Any:
    """A tensor, or an array, with the same values in memory of its own."""
    return _like(made, graphs.copy(plain(made)))
