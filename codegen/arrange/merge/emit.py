"""Emit one class for several: sizes become arguments, optional parts conditions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from burnish.codegen.arrange.analysis.holes import Switch, as_expression, filled
from burnish.codegen.arrange.merge.conditions import Condition, activations, conditions
from burnish.codegen.arrange.merge.optional_parts import Choices, resolved, switch_of
from burnish.codegen.arrange.merge.size_table import ABSENT, Table
from burnish.codegen.program import (
    Call,
    ClassPlan,
    Conditional,
    Expression,
    If,
    Literal,
    Name,
    SelfAttr,
    Statement,
)


@dataclass(frozen=True, eq=False)
class Kind:
    """Classes to merge: their anti-unifier, and its switches' values in each."""

    plans: list[ClassPlan]
    whole: ClassPlan
    choices: list[Choices]

    @classmethod
    def of(cls, plans: list[ClassPlan]) -> Kind:
        """Classes that differ in sizes only."""
        return cls(plans, plans[0], [{} for _ in plans])


def merged(kind: Kind, table: Table) -> tuple[ClassPlan, dict[str, Call]]:
    """One class for all of a kind, with arguments for what differs.

    And for each class that it replaces the constructor call.
    """
    plan = filled(table.plan, table.spelled)
    tests = conditions(kind.whole, kind.choices, table)
    taken = {*table.names.values(), *table.attributes, *(c.name for c in tests)}
    called = activations(kind.whole, kind.choices, taken)
    plan = _modules(plan, tests)
    names = {switch: name for switch, (name, _) in called.items()}
    plan = _with_tests(plan, tests, names)
    held: list[tuple[str, Expression]] = [(name, Name(name)) for name in table.held]
    asked = [c for c in tests if not c.module and _is_tested(plan, c.name)]
    held += [(c.name, c.test) for c in asked if c.name not in table.held]
    usual = table.usual()
    flags = {c.name: False for c in tests if c.is_argument}
    functions = dict(called.values())
    required = [name for name in table.names.values() if name not in usual]
    columns = {column: name for (_, column), name in table.names.items()}
    plan = replace(
        plan,
        name=kind.plans[0].name,
        defaults=usual | flags,
        parameters=[*required, *functions, *usual, *flags],
        members=[*held, *plan.members],
        contract=_contract([p.contract for p in kind.plans], columns),
    )
    calls = {}
    for i, each in enumerate(kind.plans):
        given = table.given(i)
        sizes = [as_expression(given[name]) for name in required]
        sizes += [as_expression(_function(column, i)) for column in functions.values()]
        written = {n: v for n, v in usual.items() if given.get(n, v) != v}
        options = [(name, as_expression(given[name])) for name in written]
        options += [
            (c.name, Literal(True)) for c in tests if c.is_argument and c.column[i]
        ]
        calls[each.name] = Call(plan.name, tuple(sizes), tuple(options))
    return plan, calls


def _function(column: tuple[object, ...], place: int) -> object:
    """The argument of one class; a class without the part takes the others' value."""
    found = column[place]
    return next(f for f in column if f is not ABSENT) if found is ABSENT else found


def _modules(plan: ClassPlan, tests: list[Condition]) -> ClassPlan:
    """An optional part that is one module is `nn.Identity()` where it is absent."""
    for condition in tests:
        if condition.module:
            whole = dict(plan.members)[condition.module]
            assert isinstance(whole, Conditional)
            plan = resolved(plan, dict.fromkeys(condition.switches, True))
            other = replace(whole, condition=condition.test)
            other = replace(other, otherwise=Call("nn.Identity"))
            members = [
                (name, other if name == condition.module else made)
                for name, made in plan.members
            ]
            plan = replace(plan, members=members)
    return plan


def _with_tests(
    plan: ClassPlan, tests: list[Condition], names: Mapping[Switch, str]
) -> ClassPlan:
    """The class with conditions and arguments in place of its switches."""
    by_switch = {switch: c for c in tests for switch in c.switches}

    def change(made: Expression) -> Expression:
        if not isinstance(made, Switch):
            return made.rebuilt(change)
        return Call(names[made]) if made in names else by_switch[made].test

    def asking(statement: Statement) -> Statement:
        switch = switch_of(statement)
        if switch is None or not isinstance(statement, If):
            return statement
        return replace(statement, condition=SelfAttr((by_switch[switch].name,)))

    members = [(attribute, change(made)) for attribute, made in plan.members]
    statements = [asking(statement) for statement in plan.block.statements]
    return replace(
        plan, members=members, block=replace(plan.block, statements=statements)
    )


def _is_tested(plan: ClassPlan, name: str) -> bool:
    """Whether the forward reads a condition."""
    return any(
        isinstance(s, If)
        and isinstance(s.condition, SelfAttr)
        and s.condition.path == (name,)
        for s in plan.block.statements
    )


def _contract(contracts: list[str], names: Mapping[tuple[object, ...], str]) -> str:
    """The shape contract of all; sizes that are arguments by their names.

    What one has as a number and another one by a name has the name.
    """
    parts = [re.split(r"([(), ]+)", contract) for contract in contracts]
    if len({len(part) for part in parts}) != 1:
        return ""
    words: list[str] = []
    found: dict[str, tuple[str, ...]] = {}
    for column in zip(*parts, strict=True):
        symbols = {word for word in column if word != "_" and not word.isdigit()}
        if len(set(column)) == 1:
            word = column[0]
        elif all(word.isdigit() for word in column):
            word = names.get(tuple(map(int, column)), "_")
        elif words and words[-1].endswith("(") and len(symbols) > 1:
            word = "batch"
        else:
            word = symbols.pop() if len(symbols) == 1 else "_"
        same = found.setdefault(word, column) == column
        words.append(word if same or len(set(column)) == 1 else "_")
    return "".join(words)
