"""Statements of one module brought together, where the data flow allows it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeGuard

from burnish.codegen.program import (
    Assign,
    Block,
    Expression,
    Level,
    Statement,
    Value,
    every_expression,
    walk,
)


@dataclass(eq=False)
class Group:
    """The statements and inner groups of one module of the author's tree."""

    level: Level
    items: list[Item] = field(default_factory=list)


Item: TypeAlias = Statement | Group


def grouped(items: list[Statement], depth: int = 0) -> list[Item]:
    """The statements with those of one scope below `depth` gathered into groups.

    Statements that would have to run in the middle of a module join it. A scope that
    cannot stand together even so is dissolved: its inner scopes carry its name in
    front of theirs.
    """
    result: list[Item] = list(items)
    members = _members(items, depth)
    waiting = deque(members)
    while waiting:
        level = waiting.popleft()
        result, amid = _gather(result, {id(s) for s in members[level]}, level)
        joining = [item for item in amid if _may_join(item, depth)]
        if not amid:
            continue
        if len(joining) == len(amid):
            for statement in joining:
                statement.scope = (*statement.scope, level)
            members[level] += joining
            waiting.appendleft(level)
        else:
            apart = members.pop(level)
            for statement in apart:
                statement.scope = _dissolved(statement.scope, depth)
            new = _members(apart, depth)
            if new.keys() & members.keys():
                return grouped(items, depth)
            members.update(new)
            waiting.extendleft(reversed(new))
    for item in result:
        if isinstance(item, Group):
            within = [s for s in item.items if isinstance(s, Statement)]
            item.items = grouped(within, depth + 1)
    return result


def _members(items: list[Statement], depth: int) -> dict[Level, list[Statement]]:
    """The statements of each scope below `depth`."""
    found: dict[Level, list[Statement]] = {}
    for statement in items:
        if len(statement.scope) > depth:
            found.setdefault(statement.scope[depth], []).append(statement)
    return found


def _may_join(item: Item, depth: int) -> TypeGuard[Statement]:
    return isinstance(item, Assign) and len(item.scope) == depth


def _dissolved(scope: tuple[Level, ...], depth: int) -> tuple[Level, ...]:
    if len(scope) == depth + 1:
        return scope[:depth]
    outer, inner = scope[depth], scope[depth + 1]
    joined = replace(inner, name=f"{outer.name}_{inner.name}")
    return (*scope[:depth], joined, *scope[depth + 2 :])


def _gather(
    items: list[Item], members: set[int], level: Level
) -> tuple[list[Item], list[Item]]:
    """`items` with the members as one group, and nothing.

    Where that breaks the order: the items that would have to run amid the members.
    """
    places = [i for i, item in enumerate(items) if id(item) in members]
    first, last = places[0], places[-1]
    group, before, after = Group(level), [], []
    late: dict[Value, Item] = {}
    inside: set[Value] = set()
    amid: set[Item] = set()
    for item in items[first : last + 1]:
        needs = set(used(item))
        if id(item) in members:
            amid |= {late[value] for value in needs & late.keys()}
            group.items.append(item)
            inside.update(defined(item))
        elif needs & (inside | late.keys()):
            after.append(item)
            late.update((value, item) for value in defined(item))
        else:
            before.append(item)
    if amid:
        for item in reversed(after):
            if any(
                value in set(defined(item)) for other in amid for value in used(other)
            ):
                amid.add(item)
        return items, [item for item in items if item in amid]
    return [*items[:first], *before, group, *after, *items[last + 1 :]], []


def defined(item: Item) -> Iterator[Value]:
    """The values that an item defines for those behind it."""
    if isinstance(item, Group):
        for inner in item.items:
            yield from defined(inner)
    else:
        yield from item.targets


def leaves(item: Item) -> Iterator[Expression]:
    """Every expression inside an item, blocks included."""
    if isinstance(item, Group):
        for inner in item.items:
            yield from leaves(inner)
        return
    for expression in item.expressions():
        yield from walk(expression)
    for block in item.blocks():
        yield from every_expression(block)


def used(item: Item) -> Iterator[Value]:
    """The values that an item reads and that it does not define itself."""
    own = set(defined(item)) | set(_inner_values(item))
    for expression in leaves(item):
        if isinstance(expression, Value) and expression not in own:
            yield expression


def _inner_values(item: Item) -> Iterator[Value]:
    """The values that only live inside an item's blocks."""
    if isinstance(item, Group):
        for inner in item.items:
            yield from _inner_values(inner)
        return
    yield from bound(item)
    for block in item.blocks():
        yield from block_values(block)


def bound(statement: Statement) -> Iterator[Value]:
    """The values that a loop binds for its body."""
    for name in ("index", "going"):
        value = getattr(statement, name, None)
        if value is not None:
            yield value
    yield from getattr(statement, "carried", ())


def block_values(block: Block) -> Iterator[Value]:
    """Every value that a block's statements define, at any depth."""
    for statement in block.statements:
        yield from statement.targets
        yield from _inner_values(statement)


def statements_of(item: Item) -> list[Statement]:
    """The statements of an item and of the groups inside it, in order."""
    if isinstance(item, Group):
        return [s for inner in item.items for s in statements_of(inner)]
    return [item]
