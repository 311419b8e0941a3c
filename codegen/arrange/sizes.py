"""Classes that differ in sizes only, or in one part, become one with arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from burnish.codegen.account import few
from burnish.codegen.arrange.equality import signature
from burnish.codegen.arrange.families import as_sequential, counted, with_loops
from burnish.codegen.arrange.optional import Lacking, without
from burnish.codegen.arrange.slots import (
    Change,
    Slot,
    changed,
    constructor,
    slots_of,
)
from burnish.codegen.errors import Explain
from burnish.codegen.identifier import Identifier, free
from burnish.codegen.program import (
    Block,
    Call,
    ClassPlan,
    Conditional,
    Expression,
    Infix,
    Literal,
    Name,
    Own,
)

_SHARED = {
    frozenset(("in_channels", "out_channels")): "channels",
    frozenset(("in_features", "out_features")): "features",
}
_MOST = 3
"""So many sizes of a forward may become attributes; with more, classes stay apart."""

_TELLING = 3
"""In so many different classes a size has to be a multiple before it is written so."""

Column = tuple[int, ...]
"""One size in each of several classes."""

_Outline = tuple[str, frozenset[str]]


def sized(classes: list[ClassPlan], explain: Explain) -> list[ClassPlan]:
    """The classes; those that differ only in sizes or in one part are merged."""
    return _Sizer(explain).run(classes)


@dataclass
class _Kind:
    """Classes that become one: those that have an optional part, and those without."""

    plans: list[ClassPlan]
    lacking: list[Lacking]

    @property
    def plain(self) -> list[ClassPlan]:
        """The classes without the optional part."""
        return [each.plan for each in self.lacking] + self.plans[len(self.lacking) :]


class _Sizer:
    def __init__(self, explain: Explain):
        self.explain = explain
        self.parameters: dict[str, list[str]] = {}
        self.replaced: dict[str, Call] = {}

    def run(self, classes: list[ClassPlan]) -> list[ClassPlan]:
        places = {id(plan): i for i, plan in enumerate(classes)}
        kept: dict[int, ClassPlan] = {}
        for level in _levels(classes):
            for plan in level:
                plan.members = [
                    (a, counted(self._constructed(m))) for a, m in plan.members
                ]
                with_loops(plan, self.explain)
                if plan is not classes[-1] and (made := as_sequential(plan)):
                    self.replaced[plan.name] = made
            level = [plan for plan in level if plan.name not in self.replaced]
            for kind in self._optional(list(self._kinds(level))):
                place = min(places[id(plan)] for plan in kind.plans)
                kept[place] = self._merged(kind)
        return [kept[place] for place in sorted(kept)]

    def _constructed(self, expression: Expression) -> Expression:
        """A constructor in which merged classes are called by their new names."""
        if isinstance(expression, Call) and expression.function in self.replaced:
            return self.replaced[expression.function]
        return expression.rebuilt(self._constructed)

    # --- which classes become one ---

    def _kinds(self, level: list[ClassPlan]) -> Iterator[_Kind]:
        """Classes that differ in sizes; few of those in what forward does."""
        alike: dict[str, list[ClassPlan]] = {}
        for plan in level:
            alike.setdefault(self._skeleton(plan), []).append(plan)
        for plans in alike.values():
            if len(plans) == 1 or len(self._table(plans).held) <= _MOST:
                yield _Kind(plans, [])
                continue
            self.explain(
                f"class {plans[0].name}: {len(plans) - 1} more differ in over {_MOST}"
                " sizes of their forward: only those with equal ones are one class"
            )
            exact: dict[str, list[ClassPlan]] = {}
            for plan in plans:
                exact.setdefault(self._skeleton(plan, exact=True), []).append(plan)
            for some in exact.values():
                yield _Kind(some, [])

    def _skeleton(self, plan: ClassPlan, exact: bool = False) -> str:
        """The class's name and signature with every size left open."""

        def left_open(slot: Slot, size: int) -> Expression:
            return Name("#") if slot.attribute or not exact else Literal(size)

        open_ = changed(plan, self.parameters, left_open)
        return plan.name.partition("#")[0] + signature(open_)

    def _optional(self, kinds: list[_Kind]) -> list[_Kind]:
        """The kinds; where one lacks a part that another one has, both are one."""
        places: dict[str, list[int]] = {}
        for place, kind in enumerate(kinds):
            places.setdefault(self._skeleton(kind.plans[0]), []).append(place)
        outlines = {_outline(kind.plans[0]) for kind in kinds}
        joined: set[int] = set()
        for place, kind in enumerate(kinds):
            if place in joined:
                continue
            for other, parts in self._fewer(kind, outlines, places):
                if other in joined or kinds[other].lacking:
                    continue
                whole = _Kind([*kind.plans, *kinds[other].plans], parts)
                if not self._follows(whole):
                    continue
                self.explain(
                    f"class {kind.plans[0].name}: {kinds[other].plans[0].name} is the"
                    f" same without {parts[0].name}, which is optional in one class"
                )
                kind.plans, kind.lacking = whole.plans, parts
                joined.add(other)
                break
        return [kind for place, kind in enumerate(kinds) if place not in joined]

    def _fewer(
        self, kind: _Kind, outlines: set[_Outline], places: dict[str, list[int]]
    ) -> list[tuple[int, list[Lacking]]]:
        """Where those kinds are that have all of this one's parts but one."""
        name, attributes = _outline(kind.plans[0])
        found = []
        for attribute, _ in kind.plans[0].members:
            if (name, attributes - {attribute}) not in outlines:
                continue
            lacking = [without(plan, attribute) for plan in kind.plans]
            parts = [each for each in lacking if each is not None]
            if len(parts) == len(kind.plans):
                same = places.get(self._skeleton(parts[0].plan), ())
                found += [(other, parts) for other in same]
        return sorted(found, key=lambda each: each[0])

    def _follows(self, kind: _Kind) -> bool:
        """Whether the sizes of the optional part are also sizes of the rest."""
        table = self._table(kind.plain)
        if len(table.held) > _MOST:
            return False
        return all(
            len(set(column)) == 1 or table.like(column, slot) is not None
            for slot, column in self._part(kind)
        )

    def _part(self, kind: _Kind) -> list[tuple[Slot, Column]]:
        """The sizes of the optional part, in each class that has it."""
        rows = []
        for each in kind.lacking:
            seen: list[tuple[Slot, int]] = []
            constructor(each.made, each.name, self.parameters, _recorder(seen))
            rows.append(seen)
        return [
            (column[0][0], tuple(size for _, size in column))
            for column in zip(*rows, strict=True)
        ]

    # --- one class ---

    def _table(self, plans: list[ClassPlan]) -> _Table:
        rows = [slots_of(plan, self.parameters) for plan in plans]
        columns = list(
            zip(*(tuple(size for _, size in row) for row in rows), strict=True)
        )
        return _Table([slot for slot, _ in rows[0]], columns, plans[0])

    def _merged(self, kind: _Kind) -> ClassPlan:
        """One class for all; `replaced` says how each is called from now on."""
        first = kind.plans[0]
        if len(kind.plans) == 1:
            return first
        table = self._table(kind.plain)
        places = iter(range(len(table.columns)))
        merged = changed(
            kind.plain[0],
            self.parameters,
            lambda slot, size: table.spelled(next(places), slot, size),
        )
        has: tuple[tuple[str, Expression], ...] = ()
        if kind.lacking:
            part = kind.lacking[0]
            choice = self._choice(kind, table)
            merged.members.insert(part.place, (part.name, choice))
            merged.block = self._with_part(first, table)
            first.defaults[part.name] = False
            has = ((part.name, Literal(True)),)
        first.members = [*((name, Name(name)) for name in table.held), *merged.members]
        first.block = merged.block
        usual = table.usual()
        required = [name for name in table.names.values() if name not in usual]
        first.defaults = usual | first.defaults
        first.parameters = [*required, *first.defaults]
        first.contract = _contract([p.contract for p in kind.plans], table.names)
        self.parameters[first.name] = first.parameters
        for i, plan in enumerate(kind.plans):
            given = {name: column[i] for column, name in table.names.items()}
            sizes = tuple(Literal(given[name]) for name in required)
            unusual = tuple(
                (name, Literal(given[name]))
                for name, default in usual.items()
                if given[name] != default
            )
            options = (*unusual, *(has if i < len(kind.lacking) else ()))
            self.replaced[plan.name] = Call(first.name, sizes, options)
        others = list(dict.fromkeys(plan.name for plan in kind.plans[1:]))
        self.explain(
            f"class {first.name}: the same as {few(others)} but for"
            f" {few(first.parameters) or 'names'}: one class"
        )
        return first

    def _choice(self, kind: _Kind, table: _Table) -> Expression:
        """The optional part, built where an argument asks for it."""
        part = kind.lacking[0]
        columns = iter(self._part(kind))

        def size(slot: Slot, value: int) -> Expression:
            _, column = next(columns)
            place = table.like(column, slot) if len(set(column)) > 1 else None
            return (
                Literal(value) if place is None else table.spelled(place, slot, value)
            )

        made = constructor(part.made, part.name, self.parameters, size)
        return Conditional(made, Name(part.name), Call("nn.Identity"))

    def _with_part(self, first: ClassPlan, table: _Table) -> Block:
        """The forward of the class that has the part, with what varies by name."""
        plain = [i for i, slot in enumerate(table.slots) if not slot.attribute]
        places = iter(plain)
        return changed(
            first,
            self.parameters,
            lambda slot, size: (
                Literal(size)
                if slot.attribute
                else table.spelled(next(places), slot, size)
            ),
        ).block


class _Table:
    """The sizes of several classes, a column for each place that a size stands in."""

    def __init__(self, slots: list[Slot], columns: list[Column], plan: ClassPlan):
        self.slots = slots
        self.columns = columns
        self.names: dict[Column, str] = {}
        self.multiples: dict[Column, tuple[int, Column]] = {}
        varying = [c for c in dict.fromkeys(columns) if len(set(c)) > 1]
        varying.sort(key=lambda column: max(column))
        for column in varying:
            if (found := self._multiple(column)) is not None:
                self.multiples[column] = found
            else:
                self.names[column] = self._name(column, {n for n, _ in plan.members})
        in_forward = {
            self._base(column)
            for column, slot in zip(columns, slots, strict=True)
            if not slot.attribute and len(set(column)) > 1
        }
        order = {column: i for i, column in enumerate(dict.fromkeys(columns))}
        named = sorted(self.names.items(), key=lambda item: order[item[0]])
        self.names = dict(named)
        self.held = [name for c, name in self.names.items() if c in in_forward]

    def _base(self, column: Column) -> Column:
        return self.multiples[column][1] if column in self.multiples else column

    def _multiple(self, column: Column) -> tuple[int, Column] | None:
        """How often the column is one that has a name, where that is no accident."""
        for base in self.names:
            pairs = list(zip(column, base, strict=True))
            times = {size // by if by and size % by == 0 else 0 for size, by in pairs}
            if len(times) == 1 and len(set(column)) >= _TELLING:
                by = times.pop()
                if by in (2, 3, 4, 6):
                    return by, base
        return None

    def _name(self, column: Column, attributes: set[str]) -> str:
        """A name for a size that varies, by where it is used."""
        uses = [s for s, c in zip(self.slots, self.columns, strict=True) if c == column]
        asked = dict.fromkeys(slot.parameter for slot in uses)
        wanted = next(
            (short for pair, short in _SHARED.items() if pair <= asked.keys()),
            next(iter(asked)),
        )
        taken = {*self.names.values(), "self"}
        if wanted in taken and uses[0].attribute:
            tail = wanted.rpartition("_")[2]
            wanted = f"{uses[0].attribute}_{tail}"
        return free(Identifier(wanted), taken | attributes)

    def usual(self) -> dict[str, Any]:
        """The arguments that a layer has a default for, which some class keeps."""
        found = {}
        for column, name in self.names.items():
            slots = [
                s for s, c in zip(self.slots, self.columns, strict=True) if c == column
            ]
            default = slots[0].default
            if default is not None and default in column:
                found[name] = default
        return found

    def spelled(self, place: int, slot: Slot, size: int) -> Expression:
        """What stands in a column's place: a number, an argument, a multiple of one."""
        column = self.columns[place]
        base = self._base(column)
        if base not in self.names:
            return Literal(size)
        name = self.names[base]
        known: Expression = Name(name) if slot.attribute else Own((name,))
        if column not in self.multiples:
            return known
        return Infix("*", Literal(self.multiples[column][0]), known)

    def like(self, column: Column, slot: Slot) -> int | None:
        """The place of a size that begins with this column, best of the same name."""
        found = [
            i for i, other in enumerate(self.columns) if other[: len(column)] == column
        ]
        found = [i for i in found if self.slots[i].attribute]
        same = [i for i in found if self.slots[i].parameter == slot.parameter]
        last = same[-1:] if slot.parameter.startswith("out_") else same[:1]
        return next(iter([*last, *found]), None)


def _outline(plan: ClassPlan) -> _Outline:
    """A class's name and what its attributes are called."""
    return plan.name.partition("#")[0], frozenset(name for name, _ in plan.members)


def _recorder(seen: list[tuple[Slot, int]]) -> Change:
    def record(slot: Slot, size: int) -> Expression:
        seen.append((slot, size))
        return Literal(size)

    return record


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


def _contract(contracts: list[str], names: dict[Column, str]) -> str:
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
