"""Sequence alignment of two forwards; statements of one may be missing in the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from burnish.codegen.arrange.analysis.holes import Switch
from burnish.codegen.arrange.analysis.structural_hash import hash_under
from burnish.codegen.arrange.merge.optional_parts import switch_of
from burnish.codegen.program import Block, If, Statement, Value, reads

_STEPS = 4000
"""The search gives up after this many steps; it is exponential in the worst case."""
_RUN = 40
"""The most statements under one condition; with a longer gap, two different forwards
would be one class with a condition around nearly all of it."""

Taken = tuple[int, int, Value, Value]
"""Statements that the other class lacks: start, end, new value, bypassed value."""


@dataclass(frozen=True)
class Aligned:
    """An alignment of two forwards: optional runs, and choices of old switches."""

    runs: tuple[Taken, ...]
    choices: dict[Switch, object]


class Alignment:
    """Aligns the statements of a class with those of another that has fewer."""

    def __init__(self, whole: Block, other: Block):
        self.whole, self.other = whole, other
        self.steps = 0

    def run(self, start: Mapping[Value, Value]) -> Aligned | None:
        return self._from(0, 0, dict(start), free=True)

    def _from(
        self, i: int, j: int, known: dict[Value, Value], free: bool
    ) -> Aligned | None:
        """Align the rest from two positions. free: a gap may start here."""
        self.steps += 1
        if self.steps > _STEPS:
            return None
        mine, theirs = self.whole.statements, self.other.statements
        if i == len(mine) and j == len(theirs):
            one = hash_under(self.whole.results, known, mine=True)
            two = hash_under(self.other.results, known, mine=False)
            return Aligned((), {}) if one == two else None
        if i == len(mine):
            return None
        switch = switch_of(mine[i])
        if switch is not None:
            return self._switched(i, j, known, switch)
        if j < len(theirs) and (after := _matched(mine[i], theirs[j], known)):
            found = self._from(i + 1, j + 1, after, free=True)
            if found is not None:
                return found
        return self._without(i, j, known) if free else None

    def _switched(
        self, i: int, j: int, known: dict[Value, Value], switch: Switch
    ) -> Aligned | None:
        """Align optional statements: present, or absent."""
        statement = self.whole.statements[i]
        assert isinstance(statement, If)
        ways = ((True, statement.then), (False, statement.otherwise))
        for choice, block in ways:
            after: dict[Value, Value] | None = known
            inner = block.statements
            theirs = self.other.statements[j : j + len(inner)]
            if len(theirs) < len(inner):
                continue
            for one, two in zip(inner, theirs, strict=True):
                after = None if after is None else _matched(one, two, after)
            result = block.results[0]
            if after is None or not isinstance(result, Value) or result not in after:
                continue
            after = after | {statement.targets[0]: after[result]}
            found = self._from(i + 1, j + len(inner), after, free=True)
            if found is not None:
                return replace(found, choices=found.choices | {switch: choice})
        return None

    def _without(self, i: int, j: int, known: dict[Value, Value]) -> Aligned | None:
        """Align the rest with a gap: the next statements are bypassed."""
        mine = self.whole.statements
        for end in range(i + 1, min(len(mine), i + _RUN) + 1):
            if switch_of(mine[end - 1]) is not None:
                return None
            for entry, result in _bypasses(self.whole, i, end, known):
                after = known | {result: known[entry]}
                found = self._from(end, j, after, free=False)
                if found is not None:
                    taken = (i, end, entry, result)
                    return replace(found, runs=(taken, *found.runs))
        return None


def _matched(
    one: Statement, two: Statement, known: dict[Value, Value]
) -> dict[Value, Value] | None:
    """The mapping of both classes' values, extended by two equal statements."""
    if len(one.targets) != len(two.targets) or type(one) is not type(two):
        return None
    if hash_under(one, known, mine=True) != hash_under(two, known, mine=False):
        return None
    return known | dict(zip(one.targets, two.targets, strict=True))


def _bypasses(
    block: Block, start: int, end: int, known: Mapping[Value, Value]
) -> list[tuple[Value, Value]]:
    """Values that could bypass the one result of these statements."""
    inside = block.statements[start:end]
    made = {target for s in inside for target in s.targets}
    rest = Block(block.statements[end:], block.results)
    given = list(dict.fromkeys(v for v in reads(rest) if v in made))
    if len(given) != 1 or given[0].host:
        return []
    result = given[0]
    read = dict.fromkeys(reads(Block(inside, [])))
    entries = [v for v in read if v in known and v not in made and not v.host]
    same = [v for v in entries if _sizes(v) == _sizes(result)]
    return [(entry, result) for entry in same or entries if entry.rank == result.rank]


def _sizes(value: Value) -> tuple[int | None, ...] | None:
    """The integers of a shape."""
    if value.shape is None:
        return None
    return tuple(size if isinstance(size, int) else None for size in value.shape)
