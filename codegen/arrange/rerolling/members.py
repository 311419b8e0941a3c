"""Find the loop over members: equal statements on one member after another.

A list's first item may be called apart, where a sum over all items begins with what it
gives, and so may the last, whose value for the next call nobody reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from burnish.codegen.arrange.rerolling.turns import loop_of
from burnish.codegen.program import (
    Assign,
    BinOp,
    Block,
    Change,
    Expression,
    Flow,
    Literal,
    SelfAttr,
    Slice,
    Statement,
    Subscript,
    Value,
    demand_order,
    every_expression,
    operands,
)

Path = tuple[str | int, ...]

_LEAST = 3
"""Calls in a loop over a part of a list; fewer beside the others read worse so."""


@dataclass(frozen=True)
class Row:
    """Members that a loop runs over: their paths in order, and one's name in the loop.

    items: the iterable of them all. apart: members beside them that are called apart.
    """

    paths: Sequence[Path]
    items: Expression
    singular: str
    apart: frozenset[Path] = frozenset()

    def part(self, start: int, stop: int) -> Row:
        """The row without the items before `start` and from `stop` on."""
        count = len(self.paths)
        if (start, stop) == (0, count):
            return self
        ends = (start or None, stop if stop < count else None)
        bounds = (None if end is None else Literal(end) for end in ends)
        kept = self.paths[start:stop]
        return Row(
            kept,
            Subscript(self.items, (Slice(*bounds),)),
            self.singular,
            frozenset(self.paths) - set(kept),
        )


def looped_in_part(block: Block, row: Row) -> Block | None:
    """The block with a loop over a list's items but for the first, the last, or both.

    Sums are computed as soon as their terms are there, which is in the loop; else each
    call is right before what reads its result.
    """
    count = len(row.paths)
    for order in (_sums_soon(block), on_demand(block)):
        for start, stop in ((1, count), (0, count - 1), (1, count - 1)):
            if stop - start < _LEAST:
                continue
            found = looped(order, [row.part(start, stop)])
            if found is not None:
                return found
    return None


def looped_together(
    block: Block, rows: Sequence[Row]
) -> tuple[Block, list[Row]] | None:
    """The block with one loop over several lists, and those that it runs over.

    Items at the ends may be called apart: lists of different lengths, and first and
    last items that do less.
    """
    for order in (block, _sums_soon(block)):
        calls = {id(row): _calls(order, row) for row in rows}
        leading = sorted(
            (row for row in rows if _counts_up(calls[id(row)])),
            key=lambda row: calls[id(row)][0],
        )
        for leader in leading:
            for start, stop in _parts(len(leader.paths)):
                own = calls[id(leader)][start:stop]
                within = range(own[0], 2 * own[-1] - own[-2])
                parts = {
                    id(row): [i for i, c in enumerate(calls[id(row)]) if c in within]
                    for row in leading
                }
                used = [row for row in leading if parts[id(row)]]
                if len(used) < 2 or {len(parts[id(r)]) for r in used} != {len(own)}:
                    continue
                ranges = [(row, parts[id(row)]) for row in used]
                cut = [row.part(part[0], part[-1] + 1) for row, part in ranges]
                found = looped(order, cut)
                if found is not None:
                    return found, used
    return None


def _parts(count: int) -> Iterator[tuple[int, int]]:
    """Parts that leave out fewer items at an end than a loop has, the longest first."""
    ends = [(i, count - j) for i in range(_LEAST) for j in range(_LEAST)]
    ends.sort(key=lambda part: part[0] - part[1])
    return (part for part in ends if part[1] - part[0] >= _LEAST)


def _counts_up(calls: Sequence[int]) -> bool:
    return bool(calls) and min(calls) >= 0 and sorted(set(calls)) == list(calls)


def on_demand(block: Block) -> Block:
    """The block with each statement right before the first one that needs it."""
    flow = Flow(block)
    results = operands(Block([], block.results))
    ends = [flow.maker[v] for v in results if v in flow.maker]
    order = demand_order([*ends, *block.statements], flow.makers)
    return Block([*order], block.results)


def _sums_soon(block: Block) -> Block:
    """The block with each sum behind the last of its terms."""
    flow = Flow(block)
    missing = {s: len(set(flow.makers(s))) for s in block.statements}
    order: dict[Statement, None] = {}
    for statement in block.statements:
        ready = [] if statement in order else [statement]
        while ready:
            made = ready.pop()
            order[made] = None
            for reader in dict.fromkeys(flow.readers_of(made)):
                missing[reader] -= 1
                if not missing[reader] and _is_sum(reader):
                    ready.append(reader)
    return Block([*order], block.results)


def _is_sum(statement: Statement) -> bool:
    made = statement.expression if isinstance(statement, Assign) else None
    return isinstance(made, BinOp) and made.operator == "+"


def looped(block: Block, rows: Sequence[Row]) -> Block | None:
    """The block with a loop over the members of each row, one of each in a turn.

    None where they are not called one after another, each once and alike: with the
    result of the turn before, and with operands that all turns share.
    """
    calls = [_calls(block, row) for row in rows]
    count = len(calls[0])
    period = calls[0][1] - calls[0][0] if count > 1 else 0
    if period < 1 or not all(calls):
        return None
    if any(each != [each[0] + period * i for i in range(count)] for each in calls):
        return None
    items = [Value(row.singular) for row in rows]
    calling = [
        _calling(dict(zip(paths, items, strict=True)))
        for paths in zip(*(row.paths for row in rows), strict=True)
    ]
    first, last = min(each[0] for each in calls), max(each[0] for each in calls)
    for start in range(first, max(-1, last - period), -1):
        end = start + period * count
        before, after = block.statements[:start], block.statements[end:]
        turns = [
            [s.rebuilt(change) for s in block.statements[place : place + period]]
            for place, change in zip(range(start, end, period), calling, strict=True)
        ]
        found = loop_of(turns, [*before, *after], block.results)
        if found is None:
            continue
        loop = found[0]
        if loop.carried and not loop.collected and loop.index is None:
            over = [(v, row.items) for v, row in zip(items, rows, strict=True)]
            loop = replace(
                loop,
                count=None,
                items=over[0][1],
                index=over[0][0],
                beside=tuple(over[1:]),
            )
            return Block([*before, loop, *after], block.results)
    return None


def _calls(block: Block, row: Row) -> list[int]:
    """The statements that use the members, in order; [] where one is used twice."""
    wanted = {path: place for place, path in enumerate(row.paths)}
    places = [-1] * len(row.paths)
    attributes = {path[0] for path in row.paths}
    for place, statement in enumerate(block.statements):
        for part in every_expression(statement):
            if isinstance(part, SelfAttr) and part.path[0] in attributes:
                if part.path in row.apart:
                    continue
                number = wanted.get(part.path)
                if number is None or places[number] >= 0 or statement.blocks():
                    return []
                places[number] = place
    return places


def _calling(items: Mapping[Path, Value]) -> Change:
    """A change that replaces each member by the loop's item."""

    def change(expression: Expression) -> Expression:
        if isinstance(expression, SelfAttr) and expression.path in items:
            return items[expression.path]
        return expression.rebuilt(change)

    return change
