"""Find the reshapes and attributes by which a class splits features into heads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from burnish.codegen.program import (
    Assign,
    Block,
    Expression,
    Literal,
    Method,
    SelfAttr,
    Statement,
    Value,
)

_OPEN = -1


def by_heads(
    block: Block, head_dim: str, count: Callable[[Value, int], Expression | None]
) -> Block:
    """The block with `reshape(..., self.heads, -1)` where no other axis is -1.

    head_dim: the attribute that says how wide a head is. count: the attribute that says
    how long an axis of a value is, where one does.
    """
    return Block([_cut(s, head_dim, count) for s in block.statements], block.results)


def _cut(
    statement: Statement,
    head_dim: str,
    count: Callable[[Value, int], Expression | None],
) -> Statement:
    if not isinstance(statement, Assign):
        return statement
    made = statement.expression
    if not isinstance(made, Method) or made.name != "reshape" or len(made.args) < 2:
        return statement
    *before, heads, last = made.args
    if not isinstance(last, SelfAttr) or last.path != (head_dim,):
        return statement
    if _is_open(heads):
        attribute = count(statement.targets[0], len(before))
        if attribute is None:
            return statement
        heads = attribute
    elif any(map(_is_open, before)):
        return statement
    args = (*before, heads, Literal(_OPEN))
    return replace(statement, expression=replace(made, args=args))


def _is_open(size: Expression) -> bool:
    return isinstance(size, Literal) and size.value == _OPEN
