"""Optional parts of a merged class: statements and members under a condition.

A member is under a switch as `part if switch else None`, an item of a Sequential as
`*([item] if switch else [])`, statements as `if switch:`; a layer without weights may
be a switch itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from burnish.codegen.arrange.analysis.holes import FunctionSwitch, Switch
from burnish.codegen.program import (
    Block,
    Call,
    ClassPlan,
    Conditional,
    Expression,
    If,
    ListOrTuple,
    Literal,
    Statement,
    UnaryOp,
    Value,
    exchanged,
    walk,
)

Choices = Mapping[Switch, object]
"""The values of one class's switches: a bool, or a function."""


@dataclass(frozen=True)
class Run:
    """Optional statements: where they are absent, `entry` replaces `result`."""

    start: int
    end: int
    entry: Value
    result: Value
    switch: Switch


def optional_member(made: Expression, switch: Switch) -> Conditional:
    """`made if switch else None`"""
    return Conditional(made, switch, Literal(None))


def optional_item(item: Expression, switch: Switch) -> UnaryOp:
    """`*([item] if switch else [])`"""
    return UnaryOp("*", Conditional(ListOrTuple((item,)), switch, ListOrTuple(())))


def item_of(made: Expression) -> tuple[Switch, Expression] | None:
    """The switch and the item of an optional item of a Sequential."""
    match made:
        case UnaryOp(
            operator="*",
            operand=Conditional(
                then=ListOrTuple(items=(item,)), condition=Switch() as switch
            ),
        ):
            return switch, item
    return None


def switch_of(statement: Statement) -> Switch | None:
    """The switch of optional statements."""
    match statement:
        case If(condition=Switch() as switch):
            return switch
    return None


@dataclass(frozen=True)
class OptionalPart:
    """The part of one switch: a member, an item of a Sequential, or statements."""

    switch: Switch
    member: str = ""
    item: Expression | None = None
    run: If | None = None


def parts_of(plan: ClassPlan) -> list[OptionalPart]:
    """The optional parts of a class."""
    found = []
    for attribute, made in plan.members:
        match made:
            case Conditional(condition=Switch() as switch):
                found.append(OptionalPart(switch, member=attribute))
        for inner in walk(made):
            optional = item_of(inner)
            if optional is not None:
                found.append(OptionalPart(optional[0], item=optional[1]))
    for statement in plan.block.statements:
        own = switch_of(statement)
        if own is not None and isinstance(statement, If):
            found.append(OptionalPart(own, run=statement))
    return found


def resolved(plan: ClassPlan, choices: Choices) -> ClassPlan:
    """The class for these choices, without the parts that it lacks."""
    members = []
    for attribute, made in plan.members:
        found = _made(made, choices)
        if found is not None:
            members.append((attribute, found))
    return replace(plan, members=members, block=_block(plan.block, choices))


def _made(made: Expression, choices: Choices) -> Expression | None:
    match made:
        case Conditional(then=then, condition=Switch() as own) if own in choices:
            return _made(then, choices) if choices[own] else None
        case FunctionSwitch() if made in choices:
            return Call(str(choices[made]))
        case Call(function=function, args=args, options=options):
            items: list[Expression] = []
            for arg in args:
                optional = item_of(arg)
                if optional is not None and optional[0] in choices:
                    arg = optional[1]
                    if not choices[optional[0]]:
                        continue
                found = _made(arg, choices)
                items += [] if found is None else [found]
            given = ((name, _made(value, choices)) for name, value in options)
            return Call(
                function,
                tuple(items),
                tuple((name, value) for name, value in given if value is not None),
            )
    return made.rebuilt(lambda child: _made(child, choices) or child)


def _block(block: Block, choices: Choices) -> Block:
    same: dict[Expression, Expression] = {}
    change = exchanged(same)

    statements: list[Statement] = []
    for statement in block.statements:
        switch = switch_of(statement)
        if switch is None or switch not in choices or not isinstance(statement, If):
            statements.append(statement.rebuilt(change))
            continue
        if choices[switch]:
            statements += [inner.rebuilt(change) for inner in statement.then.statements]
        taken = statement.then if choices[switch] else statement.otherwise
        for target, result in zip(statement.targets, taken.results, strict=True):
            same[target] = change(result)
    return Block(statements, [change(result) for result in block.results])


def with_runs(block: Block, runs: list[Run]) -> Block:
    """The block with these statements under their conditions."""
    starts = {run.start: run for run in runs}
    same: dict[Expression, Expression] = {}
    change = exchanged(same)

    statements: list[Statement] = []
    place = 0
    while place < len(block.statements):
        run = starts.get(place)
        if run is None:
            statements.append(block.statements[place].rebuilt(change))
            place += 1
            continue
        inside = [s.rebuilt(change) for s in block.statements[place : run.end]]
        target = replace(run.result, hint="")
        statements.append(
            If(
                (target,),
                inside[0].scope,
                run.switch,
                Block(inside, [change(run.result)]),
                Block([], [change(run.entry)]),
            )
        )
        same[run.result] = target
        place = run.end
    return Block(statements, [change(result) for result in block.results])
