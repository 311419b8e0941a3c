"""Find the loop over members: equal statements on one member after another.

A list's first item may be called apart, where a sum over all items begins with what it
gives, and so may the last, whose value for the next call nobody reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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
    every_expression,
)

Path = tuple[str | int, ...]

_LEAST = 3
"""Calls in a loop over a part of a list; fewer beside the others read worse so."""


def looped_in_part(
    block: Block, paths: Sequence[Path], items: Expression, singular: str
) -> Block | None:
    """The block with a loop over a list's items but for the first, the last, or both.

    Sums are computed as soon as their terms are there, which is in the loop.
    """
    soon, count = _sums_soon(block), len(paths)
    for start, stop in ((1, count), (0, count - 1), (1, count - 1)):
        if stop - start < _LEAST:
            continue
        ends = (start or None, stop if stop < count else None)
        bounds = (None if end is None else Literal(end) for end in ends)
        part = Subscript(items, (Slice(*bounds),))
        found = looped(soon, paths[start:stop], part, singular, paths)
        if found is not None:
            return found
    return None


def _sums_soon(block: Block) -> Block:
    """The block with each sum behind the last of its terms."""
    flow = Flow(block)
    missing = {s: len(set(flow.makers(s))) for s in block.statements}
    order: dict[Statement, None] = {}

    def add(statement: Statement) -> None:
        ready = [statement]
        while ready:
            made = ready.pop()
            order[made] = None
            for reader in dict.fromkeys(flow.readers_of(made)):
                missing[reader] -= 1
                if not missing[reader] and _is_sum(reader):
                    ready.append(reader)

    for statement in block.statements:
        if statement not in order:
            add(statement)
    return Block([*order], block.results)


def _is_sum(statement: Statement) -> bool:
    made = statement.expression if isinstance(statement, Assign) else None
    return isinstance(made, BinOp) and made.operator == "+"


def looped(
    block: Block,
    paths: Sequence[Path],
    items: Expression,
    singular: str,
    whole: Sequence[Path] = (),
) -> Block | None:
    """The block with a loop over `items`, which the paths are in order.

    None where the parts are not called one after another, each once and alike: with
    the result of the one before, and with operands that all turns share.
    whole: the paths with those beside them that are called apart.
    """
    calls = _calls(block, paths, whole)
    period = calls[1] - calls[0] if len(calls) > 1 else 0
    if period < 1 or calls != list(range(calls[0], calls[-1] + 1, period)):
        return None
    item = Value(singular)
    calling = [_calling(path, item) for path in paths]
    for start in range(calls[0], max(-1, calls[0] - period), -1):
        end = start + period * len(paths)
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
            over = replace(loop, count=None, items=items, index=item)
            return Block([*before, over, *after], block.results)
    return None


def _calls(block: Block, paths: Sequence[Path], whole: Sequence[Path]) -> list[int]:
    """The statements that use the members, in order; [] where one is used twice."""
    apart = {path for path in whole if path not in paths}
    wanted = {path: place for place, path in enumerate(paths)}
    places = [-1] * len(paths)
    attributes = {path[0] for path in paths}
    for place, statement in enumerate(block.statements):
        for part in every_expression(statement):
            if isinstance(part, SelfAttr) and part.path[0] in attributes:
                if part.path in apart:
                    continue
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
