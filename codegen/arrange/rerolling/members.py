"""Find the loop over members: equal statements on one member after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from burnish.codegen.arrange.rerolling.turns import loop_of
from burnish.codegen.program import (
    Block,
    Change,
    Expression,
    SelfAttr,
    Value,
    every_expression,
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
