"""Anti-unification of two classes: what only one of them has becomes optional."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache

from burnish.codegen.arrange.analysis.holes import FunctionSwitch, Switch
from burnish.codegen.arrange.analysis.structural_hash import expression_hash
from burnish.codegen.arrange.merge.alignment import Alignment
from burnish.codegen.arrange.merge.optional_parts import (
    Choices,
    Run,
    item_of,
    optional_item,
    optional_member,
    with_runs,
)
from burnish.codegen.program import (
    Call,
    ClassPlan,
    Conditional,
    Expression,
    ListOrTuple,
    walk,
)

_LONGEST = 120
"""Classes of more statements stay apart: aligning them takes too long."""
_LEFT_OUT, _OFF = 10.0, 0.1
"""Costs of a gap in a Sequential: a new optional item, and one that is optional."""

Open = Callable[[ClassPlan], ClassPlan]
"""The class with every size left open."""


@dataclass(frozen=True)
class Unified:
    """The anti-unifier of two classes, and the choices that give each of them.

    before: the new switches' values in all classes that were merged earlier.
    """

    plan: ClassPlan
    choices: Choices
    before: Choices


def unified(whole: ClassPlan, other: ClassPlan, opened: Open) -> Unified | None:
    """The anti-unifier; None where the other class is not a part of the first.

    Sequentials may have items that the first lacks; statements and members may not.
    """
    if len(whole.inputs) != len(other.inputs) or whole.shared or other.shared:
        return None
    if len(whole.block.statements) > _LONGEST:
        return None
    return _Unifier(whole, other, opened).run()


class _Unifier:
    def __init__(self, whole: ClassPlan, other: ClassPlan, opened: Open):
        self.whole, self.other = whole, other
        self.one, self.two = opened(whole), opened(other)
        self.choices: dict[Switch, object] = {}
        self.before: dict[Switch, object] = {}

    def run(self) -> Unified | None:
        members = self._members()
        if members is None:
            return None
        start = dict(zip(self.whole.inputs, self.other.inputs, strict=True))
        found = Alignment(self.one.block, self.two.block).run(start)
        if found is None:
            return None
        runs = [Run(*taken, self._new()) for taken in found.runs]
        self.choices |= found.choices
        block = with_runs(self.whole.block, runs)
        plan = replace(self.whole, members=members, block=block)
        return Unified(plan, self.choices, self.before)

    def _new(self) -> Switch:
        """A switch of what the other class lacks."""
        switch = Switch()
        self.before[switch], self.choices[switch] = True, False
        return switch

    # --- constructors ---

    def _members(self) -> list[tuple[str, Expression]] | None:
        theirs = dict(self.other.members)
        opened = dict(self.two.members)
        if not theirs.keys() <= {name for name, _ in self.whole.members}:
            return None
        members = []
        for (name, made), (_, open_) in zip(
            self.whole.members, self.one.members, strict=True
        ):
            found = self._member(made, open_, theirs.get(name), opened.get(name))
            if found is None:
                return None
            members.append((name, found))
        return members

    def _member(
        self,
        made: Expression,
        open_: Expression,
        theirs: Expression | None,
        opened: Expression | None,
    ) -> Expression | None:
        match made, open_:
            case (
                Conditional(then=then, condition=Switch() as switch),
                Conditional(then=inner),
            ):
                self.choices[switch] = theirs is not None
                if theirs is None or opened is None:
                    return made
                found = self._made(_Pair(then, inner), _Pair(theirs, opened))
                return None if found is None else replace(made, then=self._kept(found))
        if theirs is None or opened is None:
            return optional_member(made, self._new())
        found = self._made(_Pair(made, open_), _Pair(theirs, opened))
        return None if found is None else self._kept(found)

    def _kept(self, found: _Found) -> Expression:
        """Record the choices of one alignment of constructors."""
        self.choices |= found.choices
        self.before |= found.before
        return found.made

    def _made(self, one: _Pair, two: _Pair) -> _Found | None:
        """The anti-unifier of two constructors."""
        if expression_hash(one.opened) == expression_hash(two.opened):
            return _Found(one.made)
        match one.made, two.made:
            case mine, Call(function=function) if _is_function(mine) and _is_function(
                two.made
            ):
                return _function(mine, function)
            case Call(function="nn.Sequential"), Call(function="nn.Sequential"):
                return self._items(_pairs(one), _pairs(two))
            case (
                Call(function=function, options=options),
                Call(function=other, options=others),
            ) if function == other and dict(options).keys() == dict(others).keys():
                return self._each(one, two)
            case ListOrTuple(), ListOrTuple():
                return self._each(one, two)
        return None

    def _each(self, one: _Pair, two: _Pair) -> _Found | None:
        """Anti-unify two calls argument by argument."""
        parts = _pairs(one), _pairs(two)
        if len(parts[0]) != len(parts[1]):
            return None
        total = _Found(one.made)
        made: dict[int, Expression] = {}
        for mine, theirs in zip(*parts, strict=True):
            found = self._made(mine, theirs)
            if found is None:
                return None
            made[id(mine.made)] = found.made
            total = total.and_(found)
        return replace(
            total, made=one.made.rebuilt(lambda part: made.get(id(part), part))
        )

    def _items(self, one: list[_Pair], two: list[_Pair]) -> _Found | None:
        """Align the items of two Sequentials, at the least cost."""

        @cache
        def best(i: int, j: int) -> _Row | None:
            rows = [row for row in ways(i, j) if row is not None]
            return min(rows, key=lambda row: row.cost, default=None)

        def ways(i: int, j: int) -> list[_Row | None]:
            if i == len(one) and j == len(two):
                return [_Row()]
            rows: list[_Row | None] = []
            optional = item_of(one[i].made) if i < len(one) else None
            if i < len(one) and j < len(two):
                mine = one[i]
                if optional is not None:
                    inner = item_of(mine.opened)
                    assert inner is not None
                    mine = _Pair(optional[1], inner[1])
                found = self._made(mine, two[j])
                if found is not None and optional is not None:
                    switch = optional[0]
                    item = optional_item(found.made, switch)
                    choices = {**found.choices, switch: True}
                    found = replace(found, made=item, choices=choices)
                if found is not None:
                    apart = _apart(mine.made, two[j].made)
                    rows.append(_put(found, best(i + 1, j + 1), apart))
            if i < len(one):
                if optional is not None:
                    left = _Found(one[i].made, {optional[0]: False})
                    rows.append(_put(left, best(i + 1, j), _OFF))
                else:
                    switch = Switch()
                    item = optional_item(one[i].made, switch)
                    left = _Found(item, {switch: False}, {switch: True})
                    rows.append(_put(left, best(i + 1, j), _LEFT_OUT))
            if j < len(two):
                switch = Switch()
                item = optional_item(two[j].made, switch)
                extra = _Found(item, {switch: True}, {switch: False})
                rows.append(_put(extra, best(i, j + 1), _LEFT_OUT))
            return rows

        row = best(0, 0)
        if row is None:
            return None
        total = _Found(Call("nn.Sequential"))
        for found in row.items:
            total = total.and_(found)
        items = tuple(found.made for found in row.items)
        return replace(total, made=Call("nn.Sequential", items))


@dataclass(frozen=True)
class _Pair:
    """A constructor, and the same one without its sizes."""

    made: Expression
    opened: Expression


@dataclass(frozen=True)
class _Found:
    """The anti-unifier of two constructors, and its switches' values."""

    made: Expression
    choices: Choices = field(default_factory=dict)
    before: Choices = field(default_factory=dict)
    penalty: float = 0.0

    def and_(self, other: _Found) -> _Found:
        """Both choices."""
        return _Found(
            self.made,
            {**self.choices, **other.choices},
            {**self.before, **other.before},
            self.penalty + other.penalty,
        )


@dataclass(frozen=True)
class _Row:
    """An alignment of the items from some position on, and its cost."""

    items: tuple[_Found, ...] = ()
    cost: float = 0.0


def _put(found: _Found, row: _Row | None, cost: float) -> _Row | None:
    if row is None:
        return None
    return _Row((found, *row.items), cost + found.penalty + row.cost)


def _pairs(pair: _Pair) -> list[_Pair]:
    """A constructor's arguments: positional ones in order, options by name."""
    match pair.made, pair.opened:
        case Call(args=args, options=options), Call() as opened:
            named = dict(opened.options)  # defaults too, which are not written
            return [
                *map(_Pair, args, opened.args),
                *(_Pair(made, named[name]) for name, made in sorted(options)),
            ]
    return list(map(_Pair, pair.made.children(), pair.opened.children()))


def _is_function(made: Expression) -> bool:
    """Whether it makes a layer without weights and arguments: an activation."""
    match made:
        case FunctionSwitch():
            return True
        case Call(function=function, args=(), options=()):
            return function.startswith("nn.") and function != "nn.Identity"
    return False


def _function(one: Expression, theirs: str) -> _Found:
    """A layer without weights whose class is a switch itself."""
    match one:
        case Call(function=mine):
            switch = FunctionSwitch()
            return _Found(switch, {switch: theirs}, {switch: mine}, penalty=0.5)
        case FunctionSwitch():
            return _Found(one, {one: theirs})
    raise TypeError(one)


def _apart(one: Expression, two: Expression) -> float:
    """The cost of anti-unifying two items: options that only one of them has."""
    mine, theirs = (
        [dict(e.options).keys() for e in walk(item) if isinstance(e, Call)]
        for item in (one, two)
    )
    return sum(len(a ^ b) for a, b in zip(mine, theirs, strict=False))
