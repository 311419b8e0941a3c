"""Classes that differ only in sizes become one class with constructor arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from burnish import nn
from burnish.codegen.arrange.equality import signature
from burnish.codegen.identifier import Identifier, free
from burnish.codegen.program import (
    Call,
    ClassPlan,
    Display,
    Expression,
    Literal,
    Name,
    Repeat,
)

_SHARED = {
    frozenset(("in_channels", "out_channels")): "channels",
    frozenset(("in_features", "out_features")): "features",
}


@dataclass(frozen=True)
class Slot:
    """Where a size stands: the attribute, and what the constructor calls it."""

    attribute: str
    parameter: str


Change = Callable[[Slot, int], Expression]


def sized(classes: list[ClassPlan]) -> list[ClassPlan]:
    """The classes with those merged that differ only in their constructors' sizes."""
    parameters: dict[str, list[str]] = {}
    replaced: dict[str, Call] = {}
    kinds: dict[str, list[ClassPlan]] = {}
    order: list[str] = []
    pending = list(classes)
    for level in _levels(pending):
        for plan in level:
            plan.members = [(a, _constructed(m, replaced)) for a, m in plan.members]
            key = _skeleton(plan, parameters)
            kinds.setdefault(key, []).append(plan)
            order.append(key)
        for key in dict.fromkeys(_skeleton(plan, parameters) for plan in level):
            _merge(kinds[key], parameters, replaced)
    kept = [kinds[key][0] for key in dict.fromkeys(order)]
    places = {id(plan): i for i, plan in enumerate(classes)}
    return sorted(kept, key=lambda plan: places[id(plan)])


def _levels(classes: list[ClassPlan]) -> list[list[ClassPlan]]:
    """Classes by how deep their parts nest: those without parts first."""
    depth: dict[str, int] = {}
    for plan in classes:
        used = {name for _, made in plan.members for name in _functions(made)}
        depth[plan.name] = 1 + max((depth[n] for n in used if n in depth), default=0)
    levels: dict[int, list[ClassPlan]] = {}
    for plan in classes:
        levels.setdefault(depth[plan.name], []).append(plan)
    return [levels[d] for d in sorted(levels)]


def _functions(expression: Expression) -> set[str]:
    found = {expression.function} if isinstance(expression, Call) else set()
    for child in expression.children():
        found |= _functions(child)
    return found


def _constructed(expression: Expression, replaced: dict[str, Call]) -> Expression:
    """A constructor in which merged classes are called by their new names."""
    if isinstance(expression, Call) and expression.function in replaced:
        return replaced[expression.function]
    return expression.rebuilt(lambda child: _constructed(child, replaced))


def _skeleton(plan: ClassPlan, parameters: dict[str, list[str]]) -> str:
    """The class's name and signature with every size left open."""
    members = [
        (name, _visited(made, name, parameters, lambda slot, size: Name("#")))
        for name, made in plan.members
    ]
    return plan.name.rstrip("0123456789") + signature(replace(plan, members=members))


def _merge(
    plans: list[ClassPlan],
    parameters: dict[str, list[str]],
    replaced: dict[str, Call],
) -> None:
    """One class for all the plans; `replaced` says how each is called from now on."""
    first = plans[0]
    if len(plans) < 2:
        return
    slots, rows = [], []
    for plan in plans:
        seen: list[tuple[Slot, int]] = []
        for name, made in plan.members:
            _visited(made, name, parameters, _recorder(seen))
        slots = [slot for slot, _ in seen]
        rows.append(tuple(size for _, size in seen))
    columns = list(zip(*rows, strict=True))
    varying = [column for column in dict.fromkeys(columns) if len(set(column)) > 1]
    names = _named(varying, columns, slots, {name for name, _ in first.members})
    places = iter(columns)

    def parameter(slot: Slot, size: int) -> Expression:
        column = next(places)
        return Name(names[column]) if column in names else Literal(size)

    first.members = [
        (name, _visited(made, name, parameters, parameter))
        for name, made in first.members
    ]
    first.parameters = [names[column] for column in varying]
    parameters[first.name] = first.parameters
    first.contract = _contract([plan.contract for plan in plans], names)
    for i, plan in enumerate(plans):
        sizes = tuple(Literal(column[i]) for column in varying)
        replaced[plan.name] = Call(first.name, sizes)


def _recorder(seen: list[tuple[Slot, int]]) -> Change:
    def record(slot: Slot, size: int) -> Expression:
        seen.append((slot, size))
        return Literal(size)

    return record


def _visited(
    expression: Expression,
    attribute: str,
    parameters: dict[str, list[str]],
    change: Change,
) -> Expression:
    """A constructor with every integer argument changed, in a fixed order."""
    if isinstance(expression, Display):
        items = (_visited(i, attribute, parameters, change) for i in expression.items)
        return replace(expression, items=tuple(items))
    if isinstance(expression, Repeat):
        item = _visited(expression.item, attribute, parameters, change)
        return Repeat(item, expression.count)
    if not isinstance(expression, Call):
        return expression
    names = _parameters(expression.function, parameters)

    def argument(value: Expression, name: str) -> Expression:
        if isinstance(value, Literal) and type(value.value) is int:
            return change(Slot(attribute, name), value.value)
        return _visited(value, attribute, parameters, change)

    given = [
        argument(value, names[i] if i < len(names) else "size")
        for i, value in enumerate(expression.args)
    ]
    options = [(name, argument(value, name)) for name, value in expression.options]
    return Call(expression.function, tuple(given), tuple(options))


def _parameters(function: str, known: dict[str, list[str]]) -> list[str]:
    """What a constructor calls its positional arguments."""
    if function in known:
        return known[function]
    kind = getattr(nn, function.removeprefix("nn."), None)
    if not inspect.isclass(kind):
        return []
    return list(inspect.signature(kind).parameters)


def _named(
    varying: list[tuple[int, ...]],
    columns: list[tuple[int, ...]],
    slots: list[Slot],
    attributes: set[str],
) -> dict[tuple[int, ...], str]:
    """A name for each size that varies, by where it is used."""
    names: dict[tuple[int, ...], str] = {}
    for column in varying:
        uses = [
            slot for slot, other in zip(slots, columns, strict=True) if other == column
        ]
        asked = dict.fromkeys(slot.parameter for slot in uses)
        wanted = next(
            (short for pair, short in _SHARED.items() if pair <= asked.keys()),
            next(iter(asked)),
        )
        taken = set(names.values()) | {"self"}
        if wanted in taken:
            tail = wanted.rpartition("_")[2]
            wanted = f"{uses[0].attribute}_{tail}"
        names[column] = free(Identifier(wanted), taken)
    return names


def _contract(contracts: list[str], names: dict[tuple[int, ...], str]) -> str:
    """The shape contract of all; sizes that are arguments by their names."""
    parts = [re.split(r"([(), ]+)", contract) for contract in contracts]
    if len({len(part) for part in parts}) != 1:
        return ""
    words = []
    for column in zip(*parts, strict=True):
        if len(set(column)) == 1:
            words.append(column[0])
        elif all(word.isdigit() for word in column):
            words.append(names.get(tuple(map(int, column)), "_"))
        else:
            words.append("_")
    return "".join(words)
