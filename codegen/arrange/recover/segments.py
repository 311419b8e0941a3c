"""Cut a graph without scopes where a single tensor is live.

Between two such cuts is a region with one input and one output: a residual block, an
attention with the sum behind it, or a single layer. Values that many later parts read
(a mask, an encoder's result, the skips of a U-Net) are not counted as live.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from burnish.codegen.arrange.scopes.grouping import (
    holds_weights,
    leaves,
    used,
    values_in,
)
from burnish.codegen.program import (
    Assign,
    Call,
    Expression,
    Layer,
    Statement,
    Value,
    Weight,
)

_DENSE = ("Linear", "Conv", "Bilinear", "LSTM", "GRU", "RNN", "Multihead")


@dataclass(eq=False)
class Segment:
    """Statements that turn `entry` into `exit`, in an order made by their data flow."""

    statements: list[Statement] = field(default_factory=list)
    entry: Value | None = None
    exit: Value | None = None
    weight: int = 0


class Flow:
    """Who makes and who reads each value of a list of statements."""

    def __init__(self, statements: list[Statement], results: Iterable[Expression]):
        self.statements = statements
        self.results = set(values_in(results))
        self.reads = {id(s): list(dict.fromkeys(used(s))) for s in statements}
        self.maker: dict[Value, Statement] = {}
        self.readers: dict[Value, list[Statement]] = defaultdict(list)
        self.heavy: list[Statement] = []
        depends: set[Value] = set()
        for statement in statements:
            self.maker.update((target, statement) for target in statement.targets)
            for value in self.reads[id(statement)]:
                self.readers[value].append(statement)
            on_host = all(target.host for target in statement.targets)
            follows = not depends.isdisjoint(self.reads[id(statement)])
            if not on_host and (follows or holds_weights(statement)):
                self.heavy.append(statement)
                depends.update(t for t in statement.targets if not t.host)

    def segments(self, reach: int) -> list[Segment]:
        """The segments; a value passes by when it is read `reach` layers later."""
        place = {id(s): i for i, s in enumerate(self.heavy)}
        behind, count = [], 0
        for statement in self.heavy:
            count += dense(statement)
            behind.append(count)
        begins: dict[int, list[Value]] = defaultdict(list)
        ends: dict[int, list[Value]] = defaultdict(list)
        for statement in self.heavy:
            start = place[id(statement)]
            for value in statement.targets:
                last = max(
                    (place.get(id(s), -1) for s in self.readers.get(value, ())),
                    default=-1,
                )
                if last > start and behind[last] - behind[start] <= reach:
                    begins[start].append(value)
                    ends[last].append(value)
        made: list[Segment] = []
        live: dict[Value, None] = {}
        for value in self._given():
            last = max(place.get(id(s), -1) for s in self.readers[value])
            if last > 0 and behind[last] <= reach:
                live[value] = None
                ends[last].append(value)
        segment = Segment(entry=next(iter(live)) if len(live) == 1 else None)
        for i, statement in enumerate(self.heavy):
            segment.statements.append(statement)
            live.update(dict.fromkeys(begins[i]))
            for value in ends[i]:
                del live[value]
            if len(live) <= 1:
                segment.exit = next(iter(live), None)
                made.append(segment)
                segment = Segment(entry=segment.exit)
        return self._linked(made)

    def _given(self) -> list[Value]:
        """The model's inputs that heavy statements read."""
        read = (v for s in self.heavy for v in self.reads[id(s)])
        return [v for v in dict.fromkeys(read) if v not in self.maker and not v.host]

    def _linked(self, segments: list[Segment]) -> list[Segment]:
        """The segments with what else only they read, in order."""
        for segment in segments:
            self._set_apart(segment)
        owner = {id(s): segment for segment in segments for s in segment.statements}
        heavy = set(map(id, self.heavy))
        for statement in reversed(self.statements):
            if id(statement) in heavy:
                continue
            read = [s for t in statement.targets for s in self.readers.get(t, ())]
            found = {owner.get(id(s)) for s in read}
            shared = not self.results.isdisjoint(statement.targets)
            if len(found) == 1 and not shared and (one := found.pop()) is not None:
                owner[id(statement)] = one
        for segment in segments:
            segment.statements = []
        for statement in self.statements:
            if id(statement) in owner:
                owner[id(statement)].statements.append(statement)
        for segment in segments:
            segment.weight = sum(map(dense, segment.statements))
            segment.exit = segment.exit or self._last(segment)
            segment.statements = self.in_order(segment.statements)
        return [segment for segment in segments if segment.statements]

    def _set_apart(self, segment: Segment) -> None:
        """Take out what later segments read and what is independent of the entry.

        A table of angles, or of biases by distance: the first layer that needs it is
        where an exporter computes it.
        """
        if segment.entry is None or segment.exit is None:
            return
        inside = {id(s) for s in segment.statements}
        depends = {segment.entry}
        for statement in segment.statements:
            if not depends.isdisjoint(self.reads[id(statement)]):
                depends.update(statement.targets)
        if segment.exit not in depends:
            return
        apart: set[int] = set()
        for statement in reversed(segment.statements):
            if depends.isdisjoint(statement.targets):
                read = [s for t in statement.targets for s in self.readers.get(t, ())]
                if any(id(s) not in inside or id(s) in apart for s in read):
                    apart.add(id(statement))
        segment.statements = [s for s in segment.statements if id(s) not in apart]

    def _last(self, segment: Segment) -> Value | None:
        """The last value of a segment that others read."""
        inside = set(map(id, segment.statements))
        for statement in reversed(segment.statements):
            for target in reversed(statement.targets):
                read = self.readers.get(target, ())
                if target in self.results or any(id(s) not in inside for s in read):
                    return None if target.host else target
        return None

    def in_order(self, statements: list[Statement]) -> list[Statement]:
        """The statements in demand order: depth first from the results."""
        if any(map(_random, statements)):
            return statements
        inside = {id(s): s for s in statements}
        read = {
            id(self.maker[v])
            for s in statements
            for v in self.reads[id(s)]
            if v in self.maker
        }
        ends = [s for s in statements if id(s) not in read]
        done: dict[int, Statement] = {}
        stack = [(s, False) for s in reversed(ends)]
        while stack:
            statement, ready = stack.pop()
            if id(statement) in done:
                continue
            if ready:
                done[id(statement)] = statement
                continue
            stack.append((statement, True))
            for value in reversed(self.reads[id(statement)]):
                maker = self.maker.get(value)
                if maker is not None and id(maker) in inside:
                    stack.append((maker, False))
        return list(done.values())


def dense(statement: Statement) -> int:
    """How many layers it holds that people would count: products, not norms."""
    return sum(
        e.kind.startswith(_DENSE)
        if isinstance(e, Layer)
        else isinstance(e, Weight) and len(e.shape) > 1
        for e in leaves(statement)
    )


def _random(statement: Statement) -> bool:
    """Whether the statement's position matters: random or stateful."""
    if not isinstance(statement, Assign):
        return True
    return any(
        isinstance(e, Call) and ("random" in e.function or "bernoulli" in e.function)
        for e in leaves(statement)
    )
