"""State threading: each item of a list passes on what the first one computes.

T5's first layer adds its table of distances to the mask, and the others take that sum.
Where each of them returns it beside its result, all are called alike: one class
that makes it or not, and a loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from burnish.codegen.program import (
    Assign,
    Block,
    Call,
    ClassPlan,
    Expression,
    ListOrTuple,
    ModuleCall,
    SelfAttr,
    Statement,
    Value,
    callee,
    contained,
    reads,
)

Path = tuple[str | int, ...]


def handed_on(classes: Sequence[ClassPlan]) -> list[ClassPlan] | None:
    """The classes, with state threading through lists whose first item makes a value.

    None where there is no such list. The classes that came in stay as they are.
    """
    known = {plan.name: plan for plan in classes}
    changed = False
    for plan in classes:
        for name, made in plan.members:
            if isinstance(made, ListOrTuple) and len(made.items) > 1:
                new = _Row(known, plan.name, name).run()
                known, changed = (known, changed) if new is None else (new, True)
    model = known[classes[-1].name]
    return [*contained(model, known), model] if changed else None


@dataclass(frozen=True)
class _Place:
    """The state's places among inputs and results, and the class that makes it."""

    taken: int
    given: int
    first: str


class _Row:
    """The items of one list, called one after another."""

    def __init__(self, known: dict[str, ClassPlan], name: str, attribute: str):
        self.known = dict(known)
        self.plan = known[name]
        self.attribute = attribute
        self.made: dict[tuple[str, _Place], str] = {}
        self.apart = ""

    def run(self) -> dict[str, ClassPlan] | None:
        """The classes with this list's items changed; None where there is no state."""
        items = dict(self.plan.members)[self.attribute]
        assert isinstance(items, ListOrTuple)
        kinds = [_kind(item, self.known) for item in items.items]
        first, *others = kinds
        if first is None or None in others or len(set(others)) > 1 or first in others:
            return None
        calls = [_call(self.plan.block, (self.attribute, i)) for i in range(len(kinds))]
        row = [call for call in calls if call is not None]
        place = self._place(first, row) if len(row) == len(kinds) else None
        if place is None or (new := self._extended(str(others[0]), place)) is None:
            return None
        statements = _in_row(self.plan.block, row, place)
        made = (items.items[0], *(_renamed(item, new) for item in items.items[1:]))
        plan = self.plan.changed(self.attribute, lambda _: ListOrTuple(made))
        block = Block(statements, self.plan.block.results)
        self.known[self.plan.name] = replace(plan, block=block)
        return self.known

    def _place(self, first: str, row: list[Assign]) -> _Place | None:
        """The state: only the first call returns it, all others take it."""
        given = row[0].targets
        inputs = [_inputs(call) for call in row]
        if {len(call.targets) for call in row[1:]} != {len(given) - 1}:
            return None
        if len({len(each) for each in inputs}) > 1:
            return None
        for number, value in enumerate(given):
            places = {_only(each, value) for each in inputs[1:]}
            taken = places.pop()
            readers = [s for s in self.plan.block.statements if value in reads(s)]
            others = {id(s) for s in readers} - {id(call) for call in row[1:]}
            kept = value not in self.plan.block.results
            if taken is not None and not places and not others and kept:
                before = inputs[0][taken]
                if isinstance(before, Value) and before.rank == value.rank:
                    return _Place(taken, number, first)
        return None

    def _extended(self, name: str, place: _Place) -> str | None:
        """The class that also returns the state that it takes."""
        if (name, place) in self.made:
            return self.made[name, place]
        plan, first = self.known[name], self.known[place.first]
        self.apart = self.apart or place.first
        value = plan.inputs[place.taken]
        inner = self._within(plan, first, value, first.block.results[place.given])
        if inner is None:
            return None
        members, statements, given = inner
        results = list(plan.block.results)
        results.insert(place.given, given)
        new = f"{name}+{place.first}+{place.given}+{place.taken}"
        self.known[place.first] = replace(first, tower=self.apart)
        self.known[new] = replace(
            plan,
            name=new,
            members=members,
            block=Block(statements, results),
            contract=first.contract,
            tower=self.apart,
        )
        self.made[name, place] = new
        return new

    def _within(
        self, plan: ClassPlan, first: ClassPlan, value: Value, made: Expression
    ) -> tuple[list[tuple[str, Expression]], list[Statement], Value] | None:
        """The class's members and statements, and its results.

        made: what the first class gives; a part of it may be what makes it.
        """
        plain = list(plan.members), list(plan.block.statements), value
        maker = next((s for s in first.block.statements if made in s.targets), None)
        path = _path(maker) if isinstance(maker, Assign) else None
        if maker is None or path is None:
            return plain
        call = _call(plan.block, path)
        inner = _part(first, path), _part(plan, path)
        mine, theirs = (_kind(part, self.known) for part in inner)
        if mine is None or mine == theirs:
            return plain if mine is None else None
        if call is None or theirs is None:
            return None
        number = maker.targets.index(made)
        taken = _only(_inputs(call), value)
        same = len(call.targets) == len(maker.targets) - 1
        if taken is None or not same:
            return None
        new = self._extended(theirs, _Place(taken, number, mine))
        if new is None:
            return None
        given = replace(value)
        targets = (*call.targets[:number], given, *call.targets[number:])
        statements = [
            replace(s, targets=targets) if s is call else s
            for s in plan.block.statements
        ]
        return _with_part(plan, path, new), statements, given


def _in_row(block: Block, row: list[Assign], place: _Place) -> list[Statement]:
    """The statements; each call takes the state that the one before it returns."""
    handed = row[0].targets[place.given]
    changed: dict[int, Statement] = {}
    for call in row[1:]:
        assert isinstance(call.expression, ModuleCall)
        inputs = list(call.expression.inputs)
        inputs[place.taken] = handed
        handed = replace(row[0].targets[place.given])
        targets = list(call.targets)
        targets.insert(place.given, handed)
        expression = replace(call.expression, inputs=tuple(inputs))
        changed[id(call)] = Assign(tuple(targets), call.scope, expression)
    return [changed.get(id(s), s) for s in block.statements]


# --- parts and their calls ---


def _kind(made: Expression | None, known: dict[str, ClassPlan]) -> str | None:
    """The source's own class that a constructor calls."""
    return callee(made) if callee(made) in known else None


def _renamed(made: Expression, name: str) -> Expression:
    assert isinstance(made, Call)
    return replace(made, function=name)


def _path(call: Assign) -> Path | None:
    """The part that a statement calls."""
    made = call.expression
    if isinstance(made, ModuleCall) and isinstance(made.target, SelfAttr):
        return made.target.path
    return None


def _call(block: Block, path: Path) -> Assign | None:
    """The one statement that calls a part."""
    calls = [s for s in block.statements if isinstance(s, Assign) and _path(s) == path]
    return calls[0] if len(calls) == 1 else None


def _inputs(call: Assign) -> tuple[Expression, ...]:
    assert isinstance(call.expression, ModuleCall)
    return call.expression.inputs


def _only(inputs: Sequence[Expression], value: Expression) -> int | None:
    """The one place of a value."""
    places = [i for i, each in enumerate(inputs) if each is value]
    return places[0] if len(places) == 1 else None


def _part(plan: ClassPlan, path: Path) -> Expression | None:
    """The constructor of a member, or of an item of a list."""
    made = dict(plan.members).get(str(path[0]))
    if len(path) == 2 and isinstance(made, ListOrTuple) and isinstance(path[1], int):
        return made.items[path[1]] if path[1] < len(made.items) else None
    return made if len(path) == 1 else None


def _with_part(plan: ClassPlan, path: Path, name: str) -> list[tuple[str, Expression]]:
    """The members with another class for this item."""

    def change(made: Expression) -> Expression:
        if len(path) < 2 or not isinstance(made, ListOrTuple):
            return _renamed(made, name)
        items = enumerate(made.items)
        return ListOrTuple(
            tuple(_renamed(e, name) if i == path[1] else e for i, e in items)
        )

    return plan.changed(str(path[0]), change).members
