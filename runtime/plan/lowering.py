"""Lowering: a graph's nodes as records of kernels, in segments between eager calls."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from burnish.kernels.library import Library
from burnish.kernels.records import HELD_KINDS
from burnish.plan.cpu import (
    LOWERED,
    Builder,
    Declined,
    float16,
    lower_by_sample,
    moved,
    stretches,
    sum_of_codes,
)
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.draws import Draw
from burnish.plan.cpu.layout import PLAIN
from burnish.plan.cpu.products.gemv import least_in_place
from burnish.plan.graph import Graph, Node, Value, changed_by
from burnish.plan.order import arguments_first
from burnish.plan.updates import Batch
from burnish.planned.space import Fetch


@dataclasses.dataclass(slots=True)
class Segment:
    """Records first to behind; or, where there are none, a node that runs eagerly.

    calls: the node's lines, as a run makes them. done: the places of values that nobody
    asks for behind it. updates: of parameters by its records. draws: what a run draws
    before them. threads: how many the records are for; one where none is split. notes:
    whether the run ends behind it where a record has noted a fault.
    """

    first: int
    behind: int
    node: Node | None = None
    why: str = ""
    calls: list[Callable[[list[Any]], None]] = dataclasses.field(default_factory=list)
    fetched: list[Fetch] = dataclasses.field(default_factory=list)
    done: list[int] = dataclasses.field(default_factory=list)
    given: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    updates: Batch | None = None
    draws: list[Draw] = dataclasses.field(default_factory=list)
    threads: int = 1
    notes: bool = False


class Lowering:
    """Walks through the nodes: records for what kernels compute, segments around it."""

    def __init__(
        self, graph: Graph, library: Library, threads: int, off: Any, half: bool
    ):
        self.graph, self.off = graph, off
        may_fault = not graph.program.has_effects
        if not may_fault:
            graph.nodes = arguments_first(graph, LOWERED)
        known = graph.readers(), graph.results
        self.builder = Builder(library, threads, *known, off, may_fault, half)
        self.builder.least_in_place = least_in_place(graph)
        self.segments: list[Segment] = []
        self.wanted: dict[int, list[tuple[Value, Spot]]] = {}
        self.given: dict[int, list[tuple[Value, Spot]]] = {}
        self.folded: dict[int, Any] = {}
        self.plain: set[int] = set()  # places that only eager calls give
        self._left: dict[int, tuple[Value, Spot]] = {}
        self.arguments = [
            self._source(value)
            for place, value in sorted(graph.values.items())
            if self._is_given(place) and _is_known(value)
        ]
        self._last = {place: node for node in graph.nodes for place in node.reads}
        behind = 0
        for first, last in () if "sample_loops" in off else stretches(graph):
            self._nodes(graph.nodes[behind:first])
            self._by_sample(graph.nodes[first:last])
            behind = last
        self._nodes(graph.nodes[behind:])
        self.results = [
            self._outside(graph.values[place])
            for place in sorted(graph.results - self.plain)
            if self._is_made(place)
        ]
        self.assigned = [
            (stored.place, *self._outside(value))
            for stored, value in self.builder.assigned
        ]
        self._close()
        sources = {id(spot.buffer) for _, spot in self.arguments}
        for pairs in self.given.values():
            sources |= {id(spot.buffer) for _, spot in pairs}
        self.made = [
            buffer
            for buffer in self.builder.buffers
            if buffer.outside
            and not buffer.is_held
            and buffer.home is None
            and id(buffer) not in sources
        ]

    def _nodes(self, nodes: list[Node]) -> None:
        for node in nodes:
            self._settle(node)
            self._node(node)
            self._update(node)
            self.builder.has_changed |= self._has_effects(node)
            self.builder.done.add(id(node))

    def _by_sample(self, nodes: list[Node]) -> None:
        """Lower nodes once for each sample, or as they are where that cannot be."""
        inside = {id(node) for node in nodes}
        outside = self.graph.results | {
            place
            for place, readers in self.builder.readers.items()
            if any(id(node) not in inside for node in readers)
        }
        if not lower_by_sample(self.builder, nodes, outside):
            self._nodes(nodes)
        self.builder.done.update(map(id, nodes))

    def _node(self, node: Node) -> None:
        try:
            self._lower(node)
        except Declined as why:
            self._as_it_is(node, str(why))

    def _settle(self, node: Node) -> None:
        """Compute deferred values that are read later, before their source changes."""
        b = self.builder
        changed = set(changed_by(node))
        for place in b.sums if changed else ():
            if not b.forms.get(place) and self._last.get(place) not in (None, node):
                b.spot(self.graph.values[place])
        for place, rounded in [*b.rounded.items()] if changed else ():
            if changed & {each.place for each in rounded.values}:
                if self._last.get(place) not in (None, node):
                    b.spot(self.graph.values[place])
                del b.rounded[place]

    def _update(self, node: Node) -> None:
        """Discard the packed forms of the parameters that a node changes."""
        for place in changed_by(node):
            if not self.segments or self.segments[-1].node is not node:
                continue  # records have written over it
            known = self.builder.forms.pop(place, None)
            if known and self._last.get(place) is not node:
                value = self.graph.values[place]
                self.given[id(self.segments[-1])].append(self._source(value))

    def _has_effects(self, node: Node) -> bool:
        """Whether a node draws, or gives something new values, within the run."""
        is_eager = bool(self.segments) and self.segments[-1].node is node
        happens = any(line.call.always for line in node.lines)
        return happens and (is_eager or node.name == "update")

    def _lower(self, node: Node) -> None:
        b = self.builder
        if node.name not in LOWERED or node.name in self.off:
            raise Declined("there is no kernel for it")
        for value in (arg for arg in node.args if isinstance(arg, Value)):
            if not b.knows(value.place) and node.name != "assign":
                raise Declined(f"its input is {value.dtype}")
        touched = {arg.place for arg in node.args if isinstance(arg, Value)}
        touched |= {value.place for value in node.results}
        before = len(b.steps), len(b.buffers), len(b.faults)
        forms = {p: dict(b.forms[p]) for p in touched if p in b.forms}
        views = {p: b.views[p] for p in touched if p in b.views}
        b.label = node.label
        try:
            if not moved(b, node) and not sum_of_codes(b, node):
                LOWERED[node.name](b, node)
        except Declined:
            b.take_back(*before)
            for place in touched:
                b.forms.pop(place, None)
                b.views.pop(place, None)
            b.forms |= forms
            b.views |= views
            raise

    def _as_it_is(self, node: Node, why: str) -> None:
        self._close()
        wanted = []
        for place in sorted(node.reads):
            if place in self.graph.folded:
                self.folded[place] = self.graph.folded[place]
            elif self._is_made(place) and place not in self.plain:
                wanted.append(self._outside(self.graph.values[place]))
        self._close()
        segment = Segment(len(self.builder.steps), 0, node, why)
        self.wanted[id(segment)] = wanted
        self.given[id(segment)] = [
            self._source(value) for value in node.results if _is_known(value)
        ]
        self.plain.update(value.place for value in node.results)
        self.segments.append(segment)

    def _is_made(self, place: int) -> bool:
        """Whether a value is no argument, and kernels know where it is."""
        return self.builder.knows(place) and not self._is_given(place)

    def _is_given(self, place: int) -> bool:
        """Whether a value is an argument, or a parameter that the program changes."""
        return place < self.graph.program.takes or place in self.graph.changed

    def _source(self, value: Value) -> tuple[Value, Spot]:
        """A value from outside, as it is there, and the place of its array."""
        outer = self.graph.halves.get(value.place)
        if outer is None:
            return value, self.builder.source(value)
        return outer, float16.enters(self.builder, value, outer)

    def _outside(self, value: Value) -> tuple[Value, Spot]:
        """A value as it is outside, in a plain array that is made for this run."""
        outer = self.graph.halves.get(value.place)
        if outer is None:
            spot = self.builder.spot(value, PLAIN)
            spot.root.buffer.outside = True
            return value, spot
        if value.place not in self._left:
            self._left[value.place] = outer, float16.leaves(self.builder, value)
        return self._left[value.place]

    def _close(self) -> None:
        """End the segment of records that is being written."""
        done = self.segments[-1] if self.segments else None
        first = 0
        if done is not None:
            first = done.first if done.node is not None else done.behind
        behind, noting = len(self.builder.steps), self.builder.noting
        draws, self.builder.draws = self.builder.draws, []
        if first < noting and self.graph.program.has_effects:
            self.segments.append(Segment(first, noting, draws=draws, notes=True))
            first, draws = noting, []
        if behind > first or draws:
            self.segments.append(Segment(first, behind, draws=draws))
        self.builder.closed = behind


def _is_known(value: Value) -> bool:
    return str(value.dtype) in HELD_KINDS
