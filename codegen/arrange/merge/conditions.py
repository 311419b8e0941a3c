"""Conditions of optional parts: an argument of their own, or a comparison of sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

from burnish.codegen.arrange.analysis.holes import FunctionSwitch, Switch
from burnish.codegen.arrange.merge.optional_parts import Choices, OptionalPart, parts_of
from burnish.codegen.arrange.merge.size_table import ABSENT, Column, Table, agree
from burnish.codegen.names.identifier import Identifier, free
from burnish.codegen.ops import Trait, functions
from burnish.codegen.program import (
    Assign,
    BinOp,
    Call,
    ClassPlan,
    Expression,
    If,
    Method,
    ModuleCall,
    Name,
    SelfAttr,
    Value,
    every_expression,
    walk,
)

_ACTIVATIONS = functions(Trait.ACTIVATION)
_FEW = 3
"""Up to this many statements are named by their operators, more by their members."""

_TELLING = 3
"""Two sizes that are equal in fewer classes may be equal by chance."""


@dataclass(frozen=True)
class Condition:
    """The condition under which the parts of one switch exist.

    test: what the constructor asks; name: the attribute that the forward asks, and the
    argument, where `test` is one. switches: all that say the same. column: in which of
    the classes they are on. module: the one member that they switch, if its input
    bypasses it otherwise. has_items: the parts are items of a Sequential.
    """

    test: Expression
    name: str
    switches: frozenset[Switch]
    column: Column
    is_argument: bool
    module: str = ""
    has_items: bool = False


def conditions(
    whole: ClassPlan, choices: Sequence[Choices], table: Table
) -> list[Condition]:
    """The conditions of a class's switches; switches that always agree share one."""
    together: dict[Column, list[OptionalPart]] = {}
    for part in parts_of(whole):
        column = tuple(choice.get(part.switch, False) for choice in choices)
        together.setdefault(column, []).append(part)
    taken = {*table.names.values(), *table.attributes}
    found: list[Condition] = []
    for column, parts in together.items():
        switches = frozenset(part.switch for part in parts)
        module, size = _module(parts), _optional_size(table, column)
        if module:
            test: Expression = Name(size or module)
            own = size is None
            found.append(Condition(test, module, switches, column, own, module))
            continue
        relation = None if size in table.held else _relation(table, column)
        wanted = size or _name(parts, whole.inputs)
        name = free(Identifier(wanted), taken - {size or ""})
        taken.add(name)
        test = Name(name) if relation is None else relation
        own = size is None and relation is None
        items = any(part.item is not None for part in parts)
        found.append(Condition(test, name, switches, column, own, has_items=items))
    return found


def _module(parts: list[OptionalPart]) -> str:
    """The member that is a switch's only part: called, or bypassed."""
    members = [part.member for part in parts if part.member]
    runs = [part.run for part in parts if part.run is not None]
    if len(members) != 1 or len(runs) != 1 or len(parts) != 2:
        return ""
    statements, results = runs[0].then.statements, runs[0].otherwise.results
    match statements[0]:
        case Assign(
            expression=ModuleCall(
                target=SelfAttr(path=(name,)), inputs=(Value() as entry,)
            )
        ) if len(statements) == 1 and name == members[0] and results == [entry]:
            return members[0]
    return ""


def _optional_size(table: Table, column: Column) -> str | None:
    """An argument that exactly the classes with the part have."""
    for (_, sizes), name in table.names.items():
        there = tuple(size is not ABSENT and size is not None for size in sizes)
        if ABSENT in sizes and there == column and 0 not in sizes:
            return name
    return None


def _relation(table: Table, column: Column) -> Expression | None:
    """Two sizes that are equal (or differ) in exactly the classes with the part."""
    if len(column) < _TELLING:
        return None
    named = [
        (name, sizes)
        for (kind, sizes), name in table.names.items()
        if not kind and ABSENT not in sizes and name.endswith(("channels", "features"))
    ]
    for (one, mine), (other, theirs) in permutations(named, 2):
        equal = tuple(a == b for a, b in zip(mine, theirs, strict=True))
        if equal == column:
            return BinOp("==", Name(one), Name(other))
        if equal == tuple(not there for there in column):
            return BinOp("!=", Name(one), Name(other))
    return None


def _name(parts: list[OptionalPart], inputs: list[Value]) -> str:
    """A switch's name, from its statements' operators or from its members."""
    members = [part.member for part in parts if part.member]
    tables = [part.run for part in parts if part.run and _looks_up(part.run, members)]
    if tables and len(members) == 1:
        return f"has_{members[0]}"
    for part in parts:
        for statement in part.run.then.statements if part.run else ():
            match statement:
                case Assign(expression=Method(name="roll")):
                    return "shift"
                case Assign(expression=ModuleCall(target=SelfAttr())) if (
                    part.run and part.run.otherwise.results[0] in inputs
                ):
                    return "downsample"
                case Assign(expression=BinOp(operator="+", left=left, right=right)):
                    if all(isinstance(side, Value) for side in (left, right)):
                        return "residual"
    if len(members) > 1 and any(_activates(part.run) for part in parts if part.run):
        return "act"
    for part in parts:
        if part.member:
            return part.member
    for part in parts:
        if isinstance(part.item, Call):
            kind = part.item.function.removeprefix("nn.")
            return "expand" if kind == "Sequential" else Identifier.variable(kind)
    for part in parts:
        for statement in part.run.then.statements if part.run else ():
            match statement:
                case Assign(
                    expression=ModuleCall(target=SelfAttr(path=(str(name), *_)))
                ):
                    return name
                case Assign(expression=Call(function=function)):
                    return function.rpartition(".")[2]
    return "full"


def _activates(run: If) -> bool:
    """Whether the optional part applies an activation, and may scale it."""
    return any(
        isinstance(e, Call) and e.function in _ACTIVATIONS
        for s in run.then.statements
        for e in every_expression(s)
    )


def _looks_up(run: If, members: Sequence[str]) -> bool:
    """Whether a member is one of several operations of the optional part."""
    called = [
        s.expression.target.path[0]
        for s in run.then.statements
        if isinstance(s, Assign)
        and isinstance(s.expression, ModuleCall)
        and isinstance(s.expression.target, SelfAttr)
    ]
    return len(run.then.statements) > _FEW and set(called) == set(members)


def activations(
    whole: ClassPlan, choices: Sequence[Choices], taken: set[str]
) -> dict[Switch, tuple[str, Column]]:
    """The arguments for functions, by switch, with their values."""
    columns = {
        switch: tuple(choice.get(switch, ABSENT) for choice in choices)
        for _, made in whole.members
        for switch in walk(made)
        if isinstance(switch, FunctionSwitch)
    }
    names: dict[Column, str] = {}
    found: dict[Switch, tuple[str, Column]] = {}
    for switch, column in columns.items():
        fuller = (c for c in columns.values() if ABSENT not in c and agree(column, c))
        column = next(fuller, column)
        if column not in names:
            names[column] = free(Identifier("activation"), taken)
            taken.add(names[column])
        found[switch] = names[column], column
    return found
