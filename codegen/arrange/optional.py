"""Parts that a class could also do without: one input in, one value on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from burnish.codegen.program import (
    Apply,
    Assign,
    Block,
    Call,
    ClassPlan,
    Expression,
    Own,
    Value,
    every_expression,
)


@dataclass(frozen=True, eq=False)
class Lacking:
    """A class without one of its parts: what went in goes on."""

    plan: ClassPlan
    name: str
    made: Expression
    place: int


def without(plan: ClassPlan, name: str) -> Lacking | None:
    """The class without a part; None where no identity could stand for the part."""
    calls = sum(
        isinstance(e, Own) and e.path[0] == name for e in every_expression(plan.block)
    )
    place = [attribute for attribute, _ in plan.members].index(name)
    made = plan.members[place][1]
    if calls != 1 or not isinstance(made, Call):
        return None
    if made.function in ("nn.Param", "nn.Buffer"):
        return None
    block = _passed(plan.block, name)
    members = [member for member in plan.members if member[0] != name]
    if block is None or not members:
        return None
    return Lacking(replace(plan, members=members, block=block), name, made, place)


def _passed(block: Block, name: str) -> Block | None:
    """The block with the part's input in place of its result."""
    same: dict[Expression, Expression] = {}
    inputs: list[Expression] = []

    def change(expression: Expression) -> Expression:
        if isinstance(expression, Value):
            return same.get(expression, expression)
        if _is_call(expression, name) and isinstance(expression, Apply):
            inputs.extend(expression.inputs)
            return change(expression.inputs[0])
        return expression.rebuilt(change)

    statements = []
    for statement in block.statements:
        made = statement.rebuilt(change)
        if isinstance(made, Assign) and isinstance(made.expression, Value):
            same[made.targets[0]] = made.expression
        else:
            statements.append(made)
    results = [change(result) for result in block.results]
    return Block(statements, results) if len(inputs) == 1 else None


def _is_call(expression: Expression, name: str) -> bool:
    return (
        isinstance(expression, Apply)
        and isinstance(expression.target, Own)
        and expression.target.path == (name,)
    )
