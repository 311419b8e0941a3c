"""Group the statements of one module, reordered within the data dependences."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeGuard

from burnish.codegen.names.identifier import plain
from burnish.codegen.program import (
    Assign,
    Block,
    Expression,
    Layer,
    Level,
    Scope,
    Statement,
    Value,
    Weight,
    every_expression,
    operands,
)

_DIGITS = 9
"""The most of a place in a list; longer numbers are names."""


@dataclass(eq=False)
class Group:
    """The statements and inner groups of one module of the author's tree."""

    level: Level
    items: list[Item] = field(default_factory=list)


Item: TypeAlias = Statement | Group
Decide: TypeAlias = Callable[[str, Scope], None]


def grouped(items: list[Statement], decide: Decide, depth: int = 0) -> list[Item]:
    """The statements with those of one scope below `depth` gathered into groups.

    Statements that would have to run in the middle of a module join it, but for a list
    of modules. A scope that still cannot be contiguous is dissolved: its inner
    scopes carry its name in front of theirs, and `decide` receives it.
    """
    row = _Row(items)
    members = _members(items, depth)
    waiting = deque(members)
    while waiting:
        level = waiting.popleft()
        amid = row.gather(members[level], level)
        joining = [item for item in amid if _may_join(item, depth)]
        if not amid:
            continue
        is_list = _holds_parts(members[level], depth + 1)
        if len(joining) == len(amid) and not is_list:
            for statement in joining:
                statement.scope = (*statement.scope, level)
            members[level] += joining
            waiting.appendleft(level)
        else:
            apart = members.pop(level)
            others = (item for item in amid if is_list or not _may_join(item, depth))
            words = f"no module, {_named(next(others), depth)} has to run amid it"
            decide(words, apart[0].scope[: depth + 1])
            for statement in apart:
                statement.scope = _dissolved(statement.scope, depth)
            new = _members(apart, depth)
            if new.keys() & members.keys():
                return grouped(items, decide, depth)
            members.update(new)
            waiting.extendleft(reversed(new))
    for item in row.items():
        if isinstance(item, Group):
            within = [s for s in item.items if isinstance(s, Statement)]
            item.items = grouped(within, decide, depth + 1)
    return row.items()


def _members(items: list[Statement], depth: int) -> dict[Level, list[Statement]]:
    """The statements of each scope below `depth`."""
    found: dict[Level, list[Statement]] = {}
    for statement in items:
        if len(statement.scope) > depth:
            found.setdefault(statement.scope[depth], []).append(statement)
    return found


def _named(item: Item, depth: int) -> str:
    """A description of an item: its module, else its kind of statement."""
    if isinstance(item, Group):
        return plain(item.level.name)
    if len(item.scope) > depth:
        return plain(item.scope[depth].name)
    return "a branch or a loop"


def _holds_parts(members: list[Statement], depth: int) -> bool:
    """Whether every statement is of one part or another of a list."""
    return all(len(s.scope) > depth and is_number(s.scope[depth].name) for s in members)


def is_number(name: str) -> bool:
    """A place in a list as Python writes it: "0" and "12", not "01"."""
    return name.isdecimal() and len(name) <= _DIGITS and str(int(name)) == name


def part_of_list(level: Level) -> tuple[str, int] | None:
    """The list and the place of a part whose list is no module: "layers.0".

    The list of a part with a bare number is the module itself: "".
    """
    outer, dot, inner = level.name.rpartition(".")
    return (outer, int(inner)) if is_number(inner) and (outer or not dot) else None


def _may_join(item: Item, depth: int) -> TypeGuard[Statement]:
    return isinstance(item, Assign) and len(item.scope) == depth


def _dissolved(scope: tuple[Level, ...], depth: int) -> tuple[Level, ...]:
    if len(scope) == depth + 1:
        return scope[:depth]
    outer, inner = scope[depth], scope[depth + 1]
    joint = "." if is_number(inner.name) else "_"
    joined = replace(inner, name=f"{outer.name}{joint}{inner.name}")
    return (*scope[:depth], joined, *scope[depth + 2 :])


class _Row:
    """Items in order; gathered ones move between their first and last position only."""

    def __init__(self, items: Sequence[Item]):
        self.slots: list[Item | None] = list(items)
        self.places = {id(item): place for place, item in enumerate(items)}

    def items(self) -> list[Item]:
        return [item for item in self.slots if item is not None]

    def gather(self, members: list[Statement], level: Level) -> list[Item]:
        """Make the members one group; nothing comes back.

        Where that breaks the order: the items that would have to run amid the members.
        """
        inside = {id(member) for member in members}
        places = [self.places[key] for key in inside]
        first, last = min(places), max(places)
        group, before, after = Group(level), list[Item](), list[Item]()
        made: set[Value] = set()
        late: dict[Value, Item] = {}
        amid: dict[int, Item] = {}
        for item in self.slots[first : last + 1]:
            if item is None:
                continue
            needs = set(operands_of(item))
            if isinstance(item, Statement) and id(item) in inside:
                amid.update((id(late[v]), late[v]) for v in needs & late.keys())
                group.items.append(item)
                made.update(targets_of(item))
            elif needs & made or needs & late.keys():
                after.append(item)
                late.update((value, item) for value in targets_of(item))
            else:
                before.append(item)
        if amid:
            return _with_makers(amid, after)
        stretch: list[Item] = [*before, group, *after]
        for place, item in enumerate(stretch, first):
            self.slots[place] = item
            self.places[id(item)] = place
        free = last + 1 - first - len(stretch)
        self.slots[last + 1 - free : last + 1] = [None] * free
        return []


def _with_makers(amid: dict[int, Item], items: list[Item]) -> list[Item]:
    """Those of the items that are in `amid`, or that those there need."""
    wanted = {value for item in amid.values() for value in operands_of(item)}
    found = []
    for item in reversed(items):
        if id(item) in amid or not wanted.isdisjoint(targets_of(item)):
            wanted.update(operands_of(item))
            found.append(item)
    return found[::-1]


def targets_of(item: Item) -> Iterator[Value]:
    """The values that an item defines for those behind it."""
    return (target for s in statements_of(item) for target in s.targets)


def leaves(item: Item) -> Iterator[Expression]:
    """Every expression inside an item, blocks included."""
    if isinstance(item, Group):
        return (e for s in statements_of(item) for e in every_expression(s))
    return every_expression(item)


def operands_of(item: Item) -> Iterator[Value]:
    """The values that an item reads and that it does not define itself."""
    return operands(Block(statements_of(item), []))


def scope_of(group: Group) -> Scope:
    """Where a group is in the author's tree."""
    scopes = [statement.scope for statement in statements_of(group)]
    scope = next((s for s in scopes if group.level in s), scopes[0][:-1])
    depth = scope.index(group.level) if group.level in scope else len(scope)
    return scope[: depth + 1]


def module_of(weight: Weight) -> tuple[str, ...]:
    """The path of the module that a weight's name says it is of."""
    return tuple(weight.path.split(".")[:-1])


def statements_of(item: Item) -> list[Statement]:
    """The statements of an item and of the groups inside it, in order."""
    if isinstance(item, Group):
        return [s for inner in item.items for s in statements_of(inner)]
    return [item]


def holds_weights(statement: Statement) -> bool:
    """Whether a statement reads trained weights."""
    return any(
        bool(e.weights) and not is_rounding(e)
        if isinstance(e, Layer)
        else isinstance(e, Weight) and e.trained
        for e in leaves(statement)
    )


def is_rounding(layer: Layer) -> bool:
    """Whether it only rounds numbers, and is no layer that an author wrote."""
    return layer.kind == "FakeQuantize"


def every_weight(statement: Statement) -> Iterator[Weight]:
    """The weights that it reads, its layers' and others, in order."""
    for expression in leaves(statement):
        if isinstance(expression, Layer):
            yield from expression.weights.values()
        elif isinstance(expression, Weight):
            yield expression


def weights_of(statement: Statement) -> list[int]:
    """The ids of the trained weights that it reads, in order."""
    return [id(weight) for weight in every_weight(statement) if weight.trained]
