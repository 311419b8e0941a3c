"""Merge classes that differ in sizes only, or in optional parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from graphlib import TopologicalSorter
from itertools import combinations

from burnish.codegen.account import few
from burnish.codegen.arrange.analysis.holes import (
    FunctionSwitch,
    Hole,
    filled,
    holes_in,
)
from burnish.codegen.arrange.analysis.opening import opened
from burnish.codegen.arrange.analysis.schedule import as_needed, attends, spelled_out
from burnish.codegen.arrange.analysis.structural_hash import signature
from burnish.codegen.arrange.merge.anti_unify import unified
from burnish.codegen.arrange.merge.conditions import conditions
from burnish.codegen.arrange.merge.emit import Kind, merged
from burnish.codegen.arrange.merge.member_loops import (
    as_sequential,
    counted,
    with_loops,
)
from burnish.codegen.arrange.merge.optional_parts import Choices, parts_of, resolved
from burnish.codegen.arrange.merge.size_table import ABSENT, Table
from burnish.codegen.arrange.merge.thread_state import handed_on
from burnish.codegen.errors import Explain
from burnish.codegen.program import (
    Call,
    ClassPlan,
    Expression,
    Literal,
    Name,
    demand_order,
    walk,
)

_MOST = 3
"""Sizes of a forward that may become attributes; more hide what differs."""

_SWITCHES = 3
"""The most conditions of one class; with more, two classes are easier to read."""

_MEMBERS = 2
"""Members that may be made on a condition, for the same reason."""

_OPTIONAL = 1
"""Sizes that only an optional part has; more are another class's."""

_KINDS = 24
"""Of more classes of one name no two are aligned: their pairs take too long."""

_STATEMENT = 2
"""The weight of a statement, in calls of constructors."""


def sized(classes: list[ClassPlan], explain: Explain) -> list[ClassPlan]:
    """The classes; those that differ only in sizes or in some parts are merged.

    With state threading through lists, if fewer classes are left so.
    """
    handing, reasons = handed_on(classes), list[str]()
    if handing is not None:
        fewer = _Sizer(reasons.append).run(handing)
    explained: list[str] = []
    found = _Sizer(explained.append).run(classes)
    if handing is not None and len(fewer) < len(found):
        found, explained = fewer, reasons
    for line in explained:
        explain(line)
    return found


class _Sizer:
    def __init__(self, explain: Explain):
        self.explain = explain
        self.parameters: dict[str, list[str]] = {}
        self.defaults: dict[str, dict[str, object]] = {}
        self.replaced: dict[str, Call] = {}

    def run(self, classes: list[ClassPlan]) -> list[ClassPlan]:
        places = {plan.name: i for i, plan in enumerate(classes)}
        model = classes[-1].name
        kept: dict[int, ClassPlan] = {}
        for level in _levels(classes):
            looped = [self._looped(plan) for plan in level]
            for plan in looped:
                if plan.name != model and (made := as_sequential(plan)):
                    self.replaced[plan.name] = made
            left = [plan for plan in looped if plan.name not in self.replaced]
            for kind in self._united(list(self._kinds(left))):
                place = min(places[plan.name] for plan in kind.plans)
                kept[place] = self._one(kind)
        return _small_to_large([kept[place] for place in sorted(kept)])

    def _looped(self, plan: ClassPlan) -> ClassPlan:
        members = [(a, counted(self._constructed(m))) for a, m in plan.members]
        return with_loops(replace(plan, members=members), self.explain)

    def _constructed(self, expression: Expression) -> Expression:
        """A constructor in which merged classes are called by their new names."""
        if isinstance(expression, Call) and expression.function in self.replaced:
            return self.replaced[expression.function]
        return expression.rebuilt(self._constructed)

    # --- which classes become one ---

    def _kinds(self, level: list[ClassPlan]) -> Iterator[Kind]:
        """Classes that differ in sizes only, few of them in their forward."""
        alike: dict[str, list[ClassPlan]] = {}
        for plan in level:
            alike.setdefault(self._skeleton(plan), []).append(plan)
        for plans in alike.values():
            kind = Kind.of(plans)
            if len(plans) == 1 or len(self._table(kind).held) <= _MOST:
                yield kind
                continue
            self.explain(
                f"class {plans[0].name}: {len(plans) - 1} more differ in over {_MOST}"
                " sizes of their forward: only those with equal ones are one class"
            )
            exact: dict[str, list[ClassPlan]] = {}
            for plan in plans:
                exact.setdefault(self._skeleton(plan, exact=True), []).append(plan)
            for some in exact.values():
                yield Kind.of(some)

    def _opened(self, plan: ClassPlan, exact: bool = False) -> ClassPlan:
        """The class without its sizes; exact: with those of its forward."""

        def left_open(hole: Hole) -> Expression:
            is_open = hole.slot.attribute or not exact
            return Name("?") if is_open else Literal(hole.value)

        return filled(opened(plan, self.parameters, self.defaults)[0], left_open)

    def _skeleton(self, plan: ClassPlan, exact: bool = False) -> str:
        """A hash that is equal for classes of one name that differ in sizes only."""
        return plan.tower + _word(plan) + signature(self._opened(plan, exact))

    def _united(self, kinds: list[Kind]) -> list[Kind]:
        """The kinds, after merging each that lacks parts of another with it."""
        words: dict[tuple[str, str], list[Kind]] = {}
        for kind in kinds:
            key = kind.whole.tower, _word(kind.whole)
            words.setdefault(key, []).append(kind)
        found = []
        for some in words.values():
            waiting = sorted(some, key=lambda kind: -_weight(kind.whole))
            if len(some) > _KINDS:
                found += some
                continue
            while waiting:
                first, *others = waiting
                waiting = []
                for other in others:
                    both = (
                        self._both(first, other)
                        or self._both(_as_needed(first), _as_needed(other))
                        or self._read_alike(first, other)
                    )
                    if both is None:
                        waiting.append(other)
                    else:
                        first = both
                found.append(first)
        return found

    def _both(self, one: Kind, other: Kind) -> Kind | None:
        """Two kinds as one, where that reads better."""
        theirs = {name for name, _ in other.whole.members}
        if one.whole.base != other.whole.base:
            return None
        if not theirs or not theirs <= {name for name, _ in one.whole.members}:
            return None
        found = unified(one.whole, other.whole, self._opened)
        if found is None:
            return None
        choices: list[Choices] = [{**c, **found.before} for c in one.choices]
        choices += [found.choices for _ in other.plans]
        both = Kind([*one.plans, *other.plans], found.plan, choices)
        reason = self._against(both)
        verdict = "one class" if reason is None else f"two classes: {reason}"
        self.explain(
            f"class {one.whole.name}: {other.whole.name} is the same without some"
            f" parts: {verdict}"
        )
        return both if reason is None else None

    def _read_alike(self, one: Kind, other: Kind) -> Kind | None:
        """Two kinds as one with statements reordered and attention decomposed."""
        if _word(one.whole) != _word(other.whole) or not attends(other.whole.block):
            return None
        plans = [replace(p, block=spelled_out(p.block)) for p in other.plans]
        return self._both(_as_needed(one), Kind.of(plans))

    def _against(self, kind: Kind) -> str | None:
        """The reason why the merged class would read worse than its classes, if any."""
        for plan, choice in zip(kind.plans, kind.choices, strict=True):
            if self._skeleton(resolved(kind.whole, choice)) != self._skeleton(plan):
                return "what is left out is more than parts"
        table = self._table(kind)
        if len(table.held) > _MOST:
            return f"over {_MOST} sizes of the forward differ"
        own = [name for key, name in table.names.items() if ABSENT in key[1]]
        if len(own) > _OPTIONAL:
            return "the parts have sizes of their own"
        tests = conditions(kind.whole, kind.choices, table)
        if len(tests) > _SWITCHES:
            return f"over {_SWITCHES} conditions"
        items = [c.column for c in tests if c.has_items]
        for one, other in combinations(items, 2):
            if not any(a and b for a, b in zip(one, other, strict=True)):
                return "one part takes the place of another"
        parts = parts_of(kind.whole)
        if sum(bool(part.member) for part in parts) > _MEMBERS:
            return f"over {_MEMBERS} members would be made on a condition"
        optional = sum(
            _STATEMENT * len(part.run.then.statements)
            if part.run
            else _calls(part.item)
            for part in parts
        )
        if 2 * optional > _weight(kind.whole) and not kind.whole.tower:
            return "the parts are most of the class"
        return None

    # --- one class ---

    def _table(self, kind: Kind) -> Table:
        """The sizes of the kind's classes by the holes of the merged one."""
        parameters, defaults = self.parameters, self.defaults
        whole, holes = opened(kind.whole, parameters, defaults)
        rows: list[dict[Hole, object]] = []
        for plan, choice in zip(kind.plans, kind.choices, strict=True):
            there = list(holes_in(resolved(whole, choice)))
            mine = list(holes_in(opened(plan, parameters, defaults)[0]))
            is_alike = len(there) == len(mine)
            own = zip(there, mine, strict=True) if is_alike else ()
            rows.append({hole: other.value for hole, other in own})
        columns = [tuple(row.get(hole, ABSENT) for row in rows) for hole in holes]
        return Table(whole, holes, columns)

    def _one(self, kind: Kind) -> ClassPlan:
        """The merged class; `replaced` gets the constructor call of each class."""
        if len(kind.plans) == 1:
            return kind.whole
        plan, calls = merged(kind, self._table(kind))
        self.parameters[plan.name] = plan.parameters
        self.defaults[plan.name] = plan.defaults
        self.replaced |= calls
        others = list(dict.fromkeys(each.name for each in kind.plans[1:]))
        self.explain(
            f"class {plan.name}: the same as {few(others)} but for"
            f" {few(plan.parameters) or 'names'}: one class"
        )
        return plan


def _as_needed(kind: Kind) -> Kind:
    """The kind with statements in the order in which they are needed."""
    return Kind(list(map(as_needed, kind.plans)), as_needed(kind.whole), kind.choices)


def _word(plan: ClassPlan) -> str:
    """A class's name without its number."""
    return plan.name.partition("#")[0]


def _calls(made: Expression | None) -> int:
    """The number of calls in a constructor; None counts as one."""
    kinds = (Call, FunctionSwitch)
    return 1 if made is None else sum(isinstance(e, kinds) for e in walk(made))


def _weight(plan: ClassPlan) -> int:
    """The length of a class, in calls and statements."""
    made = sum(_calls(made) for _, made in plan.members)
    return _STATEMENT * len(plan.block.statements) + made


# --- order ---


def _levels(classes: list[ClassPlan]) -> list[list[ClassPlan]]:
    """Classes by nesting depth, those of one name on one level.

    Classes of a name that is found inside of itself are each on a level of their own.
    """

    def below(key: Mapping[str, str]) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for plan in classes:
            inner = {key[name] for name in plan.calls() if name in key}
            found.setdefault(key[plan.name], set()).update(inner)
        return found

    words = {plan.name: _word(plan) for plan in classes}
    inside = below(words)
    within = {w for w in inside if w in demand_order(inside[w], inside.__getitem__)}
    keys = {name: name if w in within else w for name, w in words.items()}
    sorter = TopologicalSorter(below(keys))
    sorter.prepare()
    levels = []
    while ready := {*sorter.get_ready()}:
        levels.append([plan for plan in classes if keys[plan.name] in ready])
        sorter.done(*ready)
    return levels


def _small_to_large(classes: list[ClassPlan]) -> list[ClassPlan]:
    """The classes in topological order of their constructors."""
    known = {plan.name: plan for plan in classes}
    return [
        *demand_order(
            classes,
            lambda plan: [known[name] for name in plan.calls() if name in known],
        )
    ]
