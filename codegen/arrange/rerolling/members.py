"""Loop rerolling across members: equal statements on one member after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from burnish.codegen.arrange.analysis.structural_hash import outline
from burnish.codegen.program import (
    Assign,
    Block,
    Change,
    Expression,
    Loop,
    Name,
    SelfAttr,
    Statement,
    Value,
    every_expression,
    exchanged,
    operands,
)

Path = tuple[str | int, ...]


def looped(
    block: Block, paths: Sequence[Path], items: Expression, singular: str
) -> Block | None:
    """The block with a loop over `items`, which the paths are in order.

    None where the parts are not called one after another, each once and alike: with
    the result of the one before, and with operands that all turns share.
    """
    calls = _calls(block, paths)
    period = calls[1] - calls[0] if len(calls) > 1 else 0
    if period < 1 or calls != list(range(calls[0], calls[-1] + 1, period)):
        return None
    for start in range(calls[0], max(-1, calls[0] - period), -1):
        end = start + period * len(paths)
        before, after = block.statements[:start], block.statements[end:]
        turns = [
            _Turn(block.statements[place : place + period], path)
            for place, path in zip(range(start, end, period), paths, strict=True)
        ]
        carried = _carried(turns)
        read = {value for s in (*before, *after) for value in operands(s)}
        if carried and _hand_on(turns, carried, read.union(block.results)):
            item = Value(singular)
            loop = _written(turns, carried, _calling(paths[0], item))
            loop.items, loop.index = items, item
            return Block([*before, loop, *after], block.results)
    return None


def _calls(block: Block, paths: Sequence[Path]) -> list[int]:
    """The statements that use the members, in order; [] where one is used twice."""
    wanted = {path: place for place, path in enumerate(paths)}
    places = [-1] * len(paths)
    attributes = {path[0] for path in paths}
    for place, statement in enumerate(block.statements):
        for part in every_expression(statement):
            if isinstance(part, SelfAttr) and part.path[0] in attributes:
                number = wanted.get(part.path)
                if number is None or places[number] >= 0 or statement.blocks():
                    return []
                places[number] = place
    return places


def _calling(path: Path, item: Expression) -> Change:
    """A change that replaces the member by the loop's item."""

    def change(expression: Expression) -> Expression:
        if isinstance(expression, SelfAttr) and expression.path == path:
            return item
        return expression.rebuilt(change)

    return change


class _Turn:
    """A hash of one turn's statements, and its values in order of first use."""

    def __init__(self, statements: Sequence[Statement], path: Path):
        self.statements = [s for s in statements if isinstance(s, Assign)]
        self.is_plain = len(self.statements) == len(statements)
        self.own = {target for s in statements for target in s.targets}
        part = _calling(path, Name("part"))
        self.outline, self.values = outline([s.rebuilt(part) for s in statements])


def _carried(turns: list[_Turn]) -> dict[int, int] | None:
    """The loop-carried values: which value of a turn is which one of the next."""
    first = turns[0]
    if not all(turn.is_plain and turn.outline == first.outline for turn in turns):
        return None
    inside = set[Value]().union(*(turn.own for turn in turns))
    found: dict[int, int] = {}
    for place, value in enumerate(first.values):
        column = [turn.values[place] for turn in turns]
        owned = [v in turn.own for v, turn in zip(column, turns, strict=True)]
        if all(owned) or (value not in inside and all(v is value for v in column)):
            continue
        ends = {
            turn.values.index(v) if v in turn.own else None
            for v, turn in zip(column[1:], turns, strict=False)
        }
        end = ends.pop()
        if any(owned) or ends or end is None or end in found.values() or value.host:
            return None
        found[place] = end
    return {end: place for place, end in found.items()}


def _hand_on(
    turns: list[_Turn], carried: dict[int, int], read: set[Expression]
) -> bool:
    """Whether only loop-carried values of the last turn are read outside."""
    handed = {turns[-1].values[end] for end in carried}
    return all(v in handed for turn in turns for v in turn.own if v in read)


def _written(turns: list[_Turn], carried: dict[int, int], calling: Change) -> Loop:
    """The loop, with the first turn's statements as its body."""
    first, last = turns[0], turns[-1]
    renamed = {
        value: _any_of([turn.values[place] for turn in turns])
        for place, value in enumerate(first.values)
        if place in carried.values() or value in first.own
    }
    change = exchanged(renamed)

    body: list[Statement] = [
        Assign(
            tuple(renamed[target] for target in s.targets),
            s.scope,
            change(calling(s.expression)),
        )
        for s in first.statements
    ]
    return Loop(
        tuple(last.values[end] for end in carried),
        carried=tuple(renamed[first.values[place]] for place in carried.values()),
        initial=tuple(first.values[place] for place in carried.values()),
        body=Block(body, [renamed[first.values[end]] for end in carried]),
    )


def _any_of(values: Sequence[Value]) -> Value:
    """One value for all turns; sizes that differ are unknown."""
    first = values[0]
    shapes = [value.shape for value in values]
    shape = None
    if all(each is not None and len(each) == first.rank for each in shapes):
        columns = zip(*(each or () for each in shapes), strict=True)
        shape = tuple(c[0] if len(set(c)) == 1 else None for c in columns)
    return replace(first, shape=shape)
