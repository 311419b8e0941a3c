"""Unsqueeze and concatenate along the new axis become one `ops.stack`."""

from __future__ import annotations

from dataclasses import replace

from burnish.codegen.program import (
    Assign,
    Block,
    Call,
    Expression,
    ListOrTuple,
    Literal,
    Method,
    Value,
)


def stacked(block: Block) -> Block:
    """The block with `ops.stack([a, b])` where it joins `a.unsqueeze(0)` and so on."""
    made: dict[Value, Expression] = {}

    def visit(expression: Expression) -> Expression:
        changed = expression.rebuilt(visit)
        match changed:
            case Call(function="ops.concat", args=(ListOrTuple(items=items),)):
                parts = [_before(item, changed, made) for item in items]
                known = tuple(part for part in parts if part is not None)
                if len(known) == len(parts) > 1:
                    listed = (ListOrTuple(known),)
                    return replace(changed, function="ops.stack", args=listed)
        return changed

    def within(block: Block) -> Block:
        for statement in block.statements:
            if isinstance(statement, Assign) and len(statement.targets) == 1:
                made[statement.targets[0]] = statement.expression
            for inner in statement.blocks():
                within(inner)
        return block

    return within(block).rebuilt(visit)


def _before(
    arg: Expression, joined: Call, made: dict[Value, Expression]
) -> Expression | None:
    """The operand of an unsqueeze, where its new axis is the one to join along."""
    axis = dict(joined.options).get("axis", Literal(0))
    maker = made.get(arg) if isinstance(arg, Value) else None
    match maker, axis:
        case (
            Method(
                name="unsqueeze", target=target, args=(Literal(value=int() as new),)
            ),
            Literal(value=int() as along),
        ) if arg.rank and new % arg.rank == along % arg.rank:
            return target
    return None
