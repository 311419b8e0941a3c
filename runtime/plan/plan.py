"""Plan: a program as segments of records, and calls between that run eagerly."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from burnish.backend import Device
from burnish.capture import Program
from burnish.capture.line import refs
from burnish.kernels.direct import address
from burnish.kernels.library import Library
from burnish.kernels.records import WORDS
from burnish.kernels.same import Same
from burnish.nn.core.param import Stored, version
from burnish.ops._shapes import plain
from burnish.plan.cpu import (
    LOWERED,
    Memory,
    placed,
    rounded_sequences,
)
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.packed import packed
from burnish.plan.eager import eager_call
from burnish.plan.graph import Graph, Node, Value
from burnish.plan.heap import trim
from burnish.plan.lowering import Lowering, Segment
from burnish.plan.rewrites.fold import fold
from burnish.plan.rewrites.fuse import RULES, fuse
from burnish.plan.rewrites.unread_queries import without_unread_queries
from burnish.plan.rewrites.unread_rows import without_unread_rows
from burnish.plan.rewrites.widen import widen
from burnish.plan.updates import Updates
from burnish.planned.space import Ends, Fault, Fetch, Room, Space, point
from burnish.tensor import Tensor

_CPU = Device("cpu")
_RECORD = 8 * WORDS


_KINDS = (
    *("float16", "gemv", "small_panels", "rounded_sequences", "sample_loops"),
    *("planes", "unread_rows", "winograd", "winograd_gradients"),
)
"""Kinds of steps that can be left out, beside rules and operators' kernels."""


def may_be_off() -> set[str]:
    """The names that `off` may have: of rules, of operators with kernels, of kinds."""
    return {*(rule.__name__ for rule in RULES), *LOWERED, *_KINDS}


class Plan:
    """A program's plan for arguments of one kind; called with its tensors.

    half: whether what products multiply is rounded to bfloat16.
    arguments: (place, slot) of tensors of the call. results: how values leave arrays.
    outside: (slot, size) of arrays that a run makes. faults: slots that say that a call
    cannot be computed. sizes: bytes by slot, of arrays that are neither the arena nor
    constants. known: arrays of folded values by their place.
    """

    def __init__(
        self,
        program: Program,
        library: Library,
        threads: int,
        off: frozenset[str] = frozenset(),
        half: bool = False,
    ):
        self.program, self.library, self._threads = program, library, threads
        self.half = half
        self.by_value = False  # whether whole numbers of the call are part of it
        library.release_memory()  # of the capture's values: constants get their own
        if "unread_rows" not in off:
            without_unread_rows(program)
            without_unread_queries(program)
        graph = Graph(program)
        fold(graph)
        if "float16" not in off:
            widen(graph)
        if "rounded_sequences" not in off:
            rounded_sequences(graph)
        fuse(graph, off)
        self._lowering = Lowering(graph, library, threads, off, half)
        self.segments = self._lowering.segments
        self.steps = self._lowering.builder.steps
        memory = placed(self._lowering.builder)
        self.memory = memory
        self._finish(graph, memory)
        trim(library)

    def _finish(self, graph: Graph, memory: Memory) -> None:
        lowering = self._lowering
        leave = [spot for _, spot in lowering.results]
        leave += [spot for *_, spot in lowering.assigned]
        leave += [spot for each in lowering.wanted.values() for _, spot in each]
        left = {spot.root.buffer for spot in leave}
        for segment in self.segments:
            wanted = lowering.wanted.get(id(segment), [])
            segment.fetched = [_fetch(value, spot) for value, spot in wanted]
            given = lowering.given.get(id(segment), [])
            segment.given = [
                (value.place, spot.buffer.slot)
                for value, spot in given
                if spot.buffer.first >= 0 or spot.buffer in left  # it is read
            ]
            if segment.node is not None:
                segment.calls = [eager_call(line) for line in segment.node.lines]
            parts = self.steps[segment.first : segment.behind]
            if any(step.shares > 1 for step in parts):
                segment.threads = self._threads
        self._let_go(graph.results | set(graph.program.fixed))
        self.arguments = [(v.place, s.buffer.slot) for v, s in lowering.arguments]
        self.results = [_fetch(value, spot) for value, spot in lowering.results]
        self.outside = [
            (buffer.slot, buffer.size) for buffer in lowering.made if buffer.slot >= 0
        ]
        sources = [*lowering.arguments, *itertools.chain(*lowering.given.values())]
        self.sizes = {s.buffer.slot: v.size * v.dtype.itemsize for v, s in sources}
        self.sizes |= dict(self.outside)
        self.faults = [b.slot for b in lowering.builder.faults if b.slot >= 0]
        arguments = [_fetch(value, spot) for value, spot in lowering.arguments]
        self._assigned = [(p, value.place) for p, value, _ in lowering.assigned]
        leaving = [*self.results, *(_fetch(v, s) for _, v, s in lowering.assigned)]
        whole = not self.eager
        ends = arguments, leaving, self.outside, self.faults, whole
        self.ends = Ends(*ends, lowering.builder.in_place)
        self._folded = [
            (place, constant) for place, constant in lowering.folded.items()
        ]
        self._records = memory.records
        self._address = address(self._records)
        self._late = [line for node in lowering.builder.late for line in node.lines]
        self.updates = Updates(lowering.builder.updates, self.steps, memory.records)
        for segment in self.segments:
            segment.updates = self.updates.within(segment.first, segment.behind)
        read = {id(s): s for c in memory.constants.values() for s in c.sources}
        for _, constant in self._folded:
            read |= {id(s): s for s in constant.sources}
        self._sources: list[Stored] = list(read.values())
        self._seen: list[Any] = []
        self._arrays: dict[int, Any] = {}
        self.known: dict[int, Any] = {}
        self.free: list[Space] = []
        self._making = threading.Lock()
        self._refresh()
        del self._lowering

    def _let_go(self, kept: set[int]) -> None:
        """Tell every segment that runs eagerly which values are dead after it."""
        kept = kept | set(range(self.program.takes))
        for segment in reversed(self.segments):
            if segment.node is None:
                continue
            made = {
                ref.place
                for line in segment.node.lines
                for ref in refs(line.call.results)
            }
            segment.done = sorted((segment.node.reads | made) - kept)
            kept |= segment.node.reads

    @property
    def eager(self) -> list[tuple[Node, str]]:
        """The nodes that run eagerly, and why."""
        return [(s.node, s.why) for s in self.segments if s.node is not None]

    @property
    def constants(self) -> dict[int, Any]:
        """The arrays that parameters and tables are packed into."""
        return self._arrays

    @property
    def made(self) -> set[int]:
        """The places of results that records give."""
        return {fetch.place for fetch in self.results}

    @property
    def looks(self) -> tuple[Same, ...] | None:
        """What has to hold before a run; None where that is not all."""
        watched = self.program.looks
        return None if watched is None else (*watched, self._is_current)

    @property
    def summary(self) -> str:
        """The share that kernels compute, in words, and the precision of products."""
        return f"{len(self.steps)} records{', bf16' if self.half else ''}"

    def checked(self, given: list[Any]) -> Any:
        """The results; raises CaptureError where a module is not what it was.

        Raises Fault where all steps run eagerly: the function takes less time.
        """
        self.program.check()
        if self.eager and not self.steps:
            raise Fault
        return self(given)

    def __call__(
        self, given: list[Any], clock: Callable[[], None] | None = None
    ) -> Any:
        """The results for the program's tensors.

        clock: called before the first step and behind each, which are run singly.
        """
        if not self._is_current():
            self._refresh()
        try:
            space = self.free.pop()
        except IndexError:
            space = self.space()
        try:
            return self._run(space, given, clock)
        finally:
            self.free.append(space)

    def space(self) -> Space:
        """Memory for one more run at the same time."""
        return self.ends.settle(Space(self.memory.arena, self.memory.slots))

    def _run(self, space: Space, given: list[Any], clock: Any) -> Any:
        pointers = space.filled(self._arrays)
        alive: dict[int, Any] = {}
        values = self.program.values(given)
        self.ends.enter(space, alive, values)
        for place, array in self.known.items():
            values[place] = Tensor.wrap(array, _CPU)
        base = space.table
        if clock is not None:
            clock()
        for segment in self.segments:
            for draw in segment.draws:
                slot = draw.spot.root.buffer.slot
                point(pointers, alive, slot, draw.make(values))
            if segment.updates:
                begun = self.updates.begin(segment.updates, values, pointers, alive)
                try:
                    self._execute(segment, base, clock)
                finally:
                    begun.end()
                continue
            if segment.node is None:
                self._execute(segment, base, clock)
                if segment.notes:
                    space.check()
                continue
            for fetch in segment.fetched:
                values[fetch.place] = fetch.of(alive)
            for call in segment.calls:
                call(values)
            for place, slot in segment.given:
                point(pointers, alive, slot, plain(values[place]))
            for place in segment.done:
                values[place] = None
            if clock is not None:
                clock()
        self.ends.leave(space, alive, values)
        for place, value in self._assigned:
            values[place].assign(values[value])
        for line in self._late:
            line.make(values)
        return self.program.filled(values)

    def _execute(self, segment: Segment, base: int, clock: Any) -> None:
        run, threads = self.library.run, segment.threads
        first, count = self.range_of(segment)
        if clock is None:
            run(first, count, base, threads)
            return
        for i in range(count):
            run(first + i * _RECORD, 1, base, threads)
            clock()

    def range_of(self, segment: Segment) -> tuple[int, int]:
        """The address of a segment's first record, and how many there are."""
        count = segment.behind - segment.first
        return self._address + segment.first * _RECORD, count

    def _refresh(self) -> None:
        """Make the constants anew whose parameters have other values."""
        with self._making:
            _ = [source.held for source in self._sources]  # lazy ones are made now
            # looked at first: what changes while constants are made is seen next time
            is_current = Same((), self._sources, ("_value",))
            now = [version(source) for source in self._sources]
            changed = {
                id(source)
                for i, source in enumerate(self._sources)
                if not self._seen or now[i] is not self._seen[i]
            }
            arrays = dict(self._arrays)
            stale = {
                slot: constant
                for slot, constant in self.memory.constants.items()
                if slot not in arrays or any(id(s) in changed for s in constant.sources)
            }
            room = Room([c.bytes for c in stale.values() if c.stored is None])
            for slot, constant in stale.items():
                is_own = constant.stored is not None  # read once, not worth a copy
                array = np.ascontiguousarray(constant.make())
                arrays[slot] = array if is_own else packed(array, constant, room)
            self.known = {place: constant.make() for place, constant in self._folded}
            self._arrays = arrays
            self._seen, self._is_current = now, is_current


def _fetch(value: Value, spot: Spot) -> Fetch:
    root = spot.root
    return Fetch(value.place, root.buffer.slot, root.offset, value.shape, value.dtype)
