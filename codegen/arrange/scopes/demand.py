"""Schedule statements by demand where a tool has sorted a file's nodes anew.

A quantizer writes its nodes level by level, over the whole graph: products that share
an input stand together, and no two layers need have theirs in the same order. In the
order of demand equal modules read alike.
"""

from __future__ import annotations

from dataclasses import replace

from burnish.codegen.arrange.scopes.grouping import (
    Group,
    Item,
    operands_of,
    statements_of,
    targets_of,
)
from burnish.codegen.program import Assign, Value, demand_order


def in_demand(item: Item) -> Item:
    """The item with the items of each group inside in that order."""
    if not isinstance(item, Group):
        return item
    items = [in_demand(inner) for inner in item.items]
    is_straight = all(isinstance(s, Assign) for s in statements_of(item))
    return replace(item, items=_demanded(items) if is_straight else items)


def _demanded(items: list[Item]) -> list[Item]:
    """Sizes of inputs, then each item just before the first one that reads it."""
    maker: dict[Value, Item] = {v: item for item in items for v in targets_of(item)}

    def needs(item: Item) -> list[Item]:
        return [maker[value] for value in operands_of(item) if value in maker]

    read = {value for item in items for value in operands_of(item)}
    sizes = [
        item
        for item in items
        if not needs(item) and all(value.host for value in targets_of(item))
    ]
    ends = [item for item in items if read.isdisjoint(targets_of(item))]
    return [*demand_order([*sizes, *ends], needs)]
