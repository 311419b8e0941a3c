"""Constants of a forward that are powers of a size: `x * 0.125` with `head_dim=64`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from burnish.codegen.arrange.hyperparams.names import HEAD_DIM
from burnish.codegen.program import (
    BinOp,
    Block,
    Call,
    ClassPlan,
    Expression,
    Literal,
    Method,
    Value,
    every_expression,
)

_POWERS = (-0.5, 0.5, -0.25, 0.25)
"""Scales of scores and embeddings; other equal numbers may be so by chance."""
Held = Callable[[str], Expression]


def scaled(
    block: Block, plan: ClassPlan, values: Mapping[str, int], held: Held
) -> Block:
    """The block with such numbers as powers of what `held` names.

    A class that cuts features into heads scales by the width of a head, any other one
    by the width of the model where it multiplies values so wide.
    """
    dim, heads = values.get("dim"), values.get("heads")
    if dim is None:
        return block
    head_dim = values.get(HEAD_DIM) or (dim // heads if heads else None)
    cuts = head_dim is not None and _cuts(plan.block, head_dim)

    def power(number: Expression, wide: bool) -> Expression | None:
        if not isinstance(number, Literal) or not isinstance(number.value, float):
            return None
        for name, size in ((HEAD_DIM, head_dim if cuts else None), ("dim", dim)):
            if size is None or (name == "dim" and not wide):
                continue
            for exponent in _POWERS:
                if _equal(number.value, size**exponent):
                    return BinOp("**", held(name), Literal(exponent))
        return None

    def visit(expression: Expression) -> Expression:
        made = expression.rebuilt(visit)
        if isinstance(made, BinOp) and made.operator in ("*", "/"):
            wide = _is_wide(expression, dim)
            found = power(made.right, wide)
            if found is not None:
                return replace(made, right=found)
            found = power(made.left, wide) if made.operator == "*" else None
            return made if found is None else replace(made, left=found)
        if isinstance(made, Call) and made.function.endswith("attention"):
            options = tuple(
                (name, (power(v, False) or v) if name == "scale" else v)
                for name, v in made.options
            )
            return replace(made, options=options)
        return made

    return block.rebuilt(visit)


def _cuts(block: Block, head_dim: int) -> bool:
    """Whether something is reshaped to heads of this width."""
    for expression in every_expression(block):
        match expression:
            case Method(name="reshape", args=(_, _, _, *_, Literal(value=size))):
                if size == head_dim:
                    return True
    return False


def _is_wide(expression: Expression, dim: int) -> bool:
    assert isinstance(expression, BinOp)
    sides = (expression.left, expression.right)
    return any(isinstance(s, Value) and s.shape and s.shape[-1] == dim for s in sides)


def _equal(number: float, other: float) -> bool:
    return np.float32(number) == np.float32(other) and other not in (0.5, 1.0, 2.0)
