"""Cut a graph without scopes where a single tensor is live.

Between two such cuts is a region with one input and one output: a residual block, an
attention with the sum behind it, or a single layer. Values that many later parts read
(a mask, an encoder's result, the skips of a U-Net) are not counted as live, nor is a
sum to which each part adds (WaveNet's skips).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from burnish.codegen.arrange.scopes.grouping import holds_weights, leaves
from burnish.codegen.program import (
    Assign,
    BinOp,
    Block,
    Call,
    Expression,
    Flow,
    Layer,
    Statement,
    Value,
    Weight,
    demand_order,
)

_DENSE = ("Linear", "Conv", "Bilinear", "LSTM", "GRU", "RNN", "Multihead")


@dataclass(eq=False)
class Segment:
    """Statements that turn `entry` into `exit`, in an order made by their data flow."""

    statements: list[Statement] = field(default_factory=list)
    entry: Value | None = None
    exit: Value | None = None
    weight: int = 0


def absorbed(
    segments: Iterable[Segment], belongs: Callable[[Segment, Segment], bool]
) -> list[Segment]:
    """The segments; one that belongs to the segment before it is a part of that."""
    kept: list[Segment] = []
    for segment in segments:
        if kept and belongs(kept[-1], segment):
            kept[-1].statements += segment.statements
            kept[-1].exit = segment.exit
        else:
            kept.append(segment)
    return kept


class Cuts:
    """Cuts the statements of a program between single live tensors.

    entering: values that the block reads and modules beside it make. They are live from
    where they are read; the model's inputs are from the start.
    """

    def __init__(self, block: Block, entering: Container[Value] = ()):
        self.entering = entering
        self.statements = block.statements
        self.flow = Flow(block)
        self.heavy: list[Statement] = []
        aside = _running_sums(self.flow)
        depends: set[Value] = set()
        for statement in block.statements:
            if statement in aside:
                depends.update(statement.targets)
                continue
            follows = not depends.isdisjoint(self.flow.reads[statement])
            if not on_host(statement) and (follows or holds_weights(statement)):
                self.heavy.append(statement)
                depends.update(t for t in statement.targets if not t.host)
        self.weighty = set(self.heavy)

    def segments(self, reach: int) -> list[Segment]:
        """The segments; a value passes by when it is read `reach` layers later."""
        place = {s: i for i, s in enumerate(self.heavy)}
        behind, count = [], 0
        for statement in self.heavy:
            count += dense(statement)
            behind.append(count)
        begins: dict[int, list[Value]] = defaultdict(list)
        ends: dict[int, list[Value]] = defaultdict(list)

        def note(value: Value, start: int, last: int) -> None:
            if last > start and behind[last] - behind[start] <= reach:
                begins[start].append(value)
                ends[last].append(value)

        for statement in self.heavy:
            start = place[statement]
            for value in statement.targets:
                readers = self.flow.readers.get(value, ())
                last = max((place.get(s, -1) for s in readers), default=-1)
                note(value, start, last)
        made: list[Segment] = []
        live: dict[Value, None] = {}
        entries: dict[int, Value] = {}
        for value in self._given():
            read = [place[s] for s in self.flow.readers[value] if s in place]
            start, last = min(read), max(read)
            if value in self.entering:
                entries[start] = value
                note(value, start, last)
            elif last > 0 and behind[last] <= reach:
                live[value] = None
                ends[last].append(value)
        segment = Segment(entry=next(iter(live)) if len(live) == 1 else None)
        for i, statement in enumerate(self.heavy):
            if not segment.statements and segment.entry is None:
                segment.entry = entries.get(i)
            segment.statements.append(statement)
            live.update(dict.fromkeys(begins[i]))
            for value in ends[i]:
                del live[value]
            if len(live) <= 1:
                segment.exit = next(iter(live), None)
                made.append(segment)
                segment = Segment(entry=segment.exit)
        return self.linked(made)

    def _given(self) -> list[Value]:
        """The model's inputs that heavy statements read."""
        read = (v for s in self.heavy for v in self.flow.reads[s])
        return [
            v for v in dict.fromkeys(read) if v not in self.flow.maker and not v.host
        ]

    def linked(self, segments: list[Segment]) -> list[Segment]:
        """The segments with what else only they read, in order."""
        for segment in segments:
            self._set_apart(segment)
        owner = {s: segment for segment in segments for s in segment.statements}
        for statement in reversed(self.statements):
            if statement in self.weighty:
                continue
            found = set(map(owner.get, self.flow.readers_of(statement)))
            shared = not self.flow.results.isdisjoint(statement.targets)
            if len(found) == 1 and not shared and (one := found.pop()) is not None:
                owner[statement] = one
        for segment in segments:
            segment.statements = []
        for statement in self.statements:
            if statement in owner:
                owner[statement].statements.append(statement)
        for segment in segments:
            segment.weight = sum(map(dense, segment.statements))
            segment.exit = segment.exit or self._last(segment)
            segment.statements = self.in_order(segment.statements)
        return [segment for segment in segments if segment.statements]

    def _set_apart(self, segment: Segment) -> None:
        """Hoist statements that later segments read or that do not depend on the entry.

        A table of angles, or of biases by distance: the first layer that needs it is
        where an exporter computes it.
        """
        if segment.entry is None or segment.exit is None:
            return
        inside = set(segment.statements)
        depends = {segment.entry}
        for statement in segment.statements:
            if not depends.isdisjoint(self.flow.reads[statement]):
                depends.update(statement.targets)
        if segment.exit not in depends:
            return
        for statement in reversed(segment.statements):
            stays = inside.issuperset(self.flow.readers_of(statement))
            if depends.isdisjoint(statement.targets) and not stays:
                inside.remove(statement)
        segment.statements = [s for s in segment.statements if s in inside]

    def _last(self, segment: Segment) -> Value | None:
        """The last value of a segment that others read."""
        inside = set(segment.statements)
        for statement in reversed(segment.statements):
            for target in reversed(statement.targets):
                if self.flow.is_read_outside(target, inside):
                    return None if target.host else target
        return None

    def in_order(self, statements: list[Statement]) -> list[Statement]:
        """The statements in demand order: depth first from the results."""
        if any(map(_random, statements)):
            return statements
        inside = set(statements)
        read = {maker for s in statements for maker in self.flow.makers(s)}
        ends = [s for s in statements if s not in read]
        return [
            *demand_order(
                ends, lambda s: [made for made in self.flow.makers(s) if made in inside]
            )
        ]


def _running_sums(flow: Flow) -> set[Statement]:
    """Running sums: each sum is read by the next sum alone."""
    found: set[Statement] = set()
    for last in reversed([*flow.reads]):
        chain: list[Statement] = []
        step: Statement | None = last if last not in found else None
        while step is not None and _is_sum(step):
            chain.append(step)
            before = flow.reads[step][0]
            alone = len(flow.readers[before]) == 1 and before not in flow.results
            step = flow.maker.get(before) if alone else None
        if len(chain) > 1 and _are_layers(chain, flow):
            found.update(chain)
    return found


def _are_layers(sums: list[Statement], flow: Flow) -> bool:
    """Whether layers give the terms, one deeper in the model than the other.

    sums: the last one first. Branches that run side by side are summed, too.
    """
    terms = [value for total in sums for value in flow.reads[total][1:]]
    terms.append(flow.reads[sums[-1]][0])
    makers = [flow.maker.get(term) for term in terms]
    if any(maker is None or not any(layers_of(maker)) for maker in makers):
        return False
    if any(len(flow.readers[term]) > 1 for term in terms):
        return False
    return all(a and b and _is_deeper(a, b, flow) for a, b in pairwise(makers))


def _is_deeper(later: Statement, earlier: Statement, flow: Flow) -> bool:
    """Whether a statement depends on what another one reads, through more layers."""
    start = {v for v in flow.reads[earlier] if not v.host}
    above = {m for value in start for m in [flow.maker.get(value)]}
    seen = {*flow.makers(later)} - above
    waiting = [*seen]
    while waiting:
        statement = waiting.pop()
        if not start.isdisjoint(flow.reads[statement]):
            return True
        found = {*flow.makers(statement)} - seen - above
        seen |= found
        waiting += found
    return False


def _is_sum(statement: Statement) -> bool:
    """Whether it is the sum of two tensors."""
    match expression(statement):
        case BinOp(operator="+", left=Value() as one, right=Value() as other):
            return one is not other and not (one.host or other.host)
    return False


def dense(statement: Statement) -> int:
    """How many layers it holds that people would count: products, not norms."""
    return sum(
        e.kind.startswith(_DENSE)
        if isinstance(e, Layer)
        else isinstance(e, Weight) and len(e.shape) > 1
        for e in leaves(statement)
    )


def expression(statement: Statement) -> Expression | None:
    return statement.expression if isinstance(statement, Assign) else None


def on_host(statement: Statement) -> bool:
    """Whether it gives numbers of the host alone."""
    return all(target.host for target in statement.targets)


def layers_of(statement: Statement) -> list[Layer]:
    return [e for e in leaves(statement) if isinstance(e, Layer)]


def _random(statement: Statement) -> bool:
    """Whether the statement's position matters: random or stateful."""
    if not isinstance(statement, Assign):
        return True
    return any(
        isinstance(e, Call) and ("random" in e.function or "bernoulli" in e.function)
        for e in leaves(statement)
    )
