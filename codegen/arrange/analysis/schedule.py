"""Statements in the order of demand; attention decomposed into its steps.

Two classes that do the same can say so in two orders, and one that adds to its scores
has them where another one calls an attention: in this form both read alike.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from burnish.codegen.arrange.analysis.open_forward import ATTENTION
from burnish.codegen.program import (
    Assign,
    Attribute,
    BinOp,
    Block,
    Call,
    ClassPlan,
    Expression,
    Flow,
    Literal,
    Statement,
    Value,
    demand_order,
    reads,
    values_in,
)


def in_order(block: Block) -> Block:
    """The block with each statement just before the first one that reads it.

    Sizes that are read from the inputs' shapes come first.
    """
    flow, needed = Flow(block), set(reads(block))
    sizes = (
        s for s in block.statements if all(t.host and t in needed for t in s.targets)
    )
    first = [s for s in sizes if not flow.makers(s)]
    ends = [flow.maker[v] for v in values_in(block.results) if v in flow.maker]
    return Block([*demand_order([*first, *ends], flow.makers)], block.results)


def as_needed(plan: ClassPlan) -> ClassPlan:
    """The class with its statements in the order in which they are needed."""
    return replace(plan, block=in_order(plan.block))


def attends(block: Block) -> bool:
    """Whether the block calls an attention."""
    return any(map(_call, block.statements))


def spelled_out(block: Block) -> Block:
    """The block with its attentions as products and a softmax, as they are computed."""
    statements: list[Statement] = []
    for statement in block.statements:
        call = _call(statement)
        statements += [statement] if call is None else _steps(call, statement)
    return in_order(Block(statements, block.results))


def _call(statement: Statement) -> Call | None:
    """The attention that a statement calls, where it can be decomposed."""
    made = statement.expression if isinstance(statement, Assign) else None
    if not isinstance(made, Call) or made.function != ATTENTION:
        return None
    if {name for name, _ in made.options} - {"attn_mask", "scale"}:
        return None
    mask = dict(made.options).get("attn_mask")
    if mask is not None and mask.dtype == "bool":
        return None
    return made if len(made.args) == 3 and _scale(made) is not None else None


def _scale(call: Call) -> float | None:
    given = dict(call.options).get("scale")
    if isinstance(given, Literal):
        return float(given.value)
    size = (call.args[0].shape or (None,))[-1]
    return size**-0.5 if isinstance(size, int) and size else None


def _steps(call: Call, statement: Statement) -> list[Statement]:
    """softmax(scaled queries @ keys.mT + mask) @ values"""
    q, k, v = call.args
    scale, mask = _scale(call), dict(call.options).get("attn_mask")
    assert scale is not None
    steps: list[Statement] = []

    def named(made: Expression) -> Value:
        value = Value(dtype=statement.targets[0].dtype)
        steps.append(Assign((value,), statement.scope, made))
        return value

    shortest = Literal(float(str(np.float32(scale))))  # of single precision
    scaled = named(BinOp("*", q, shortest))
    scores = named(BinOp("@", scaled, named(Attribute(k, "mT"))))
    if mask is not None:
        scores = named(BinOp("+", scores, mask))
    weights = named(Call("ops.softmax", (scores,)))
    made = BinOp("@", weights, v)
    return [*steps, Assign(statement.targets, statement.scope, made)]
