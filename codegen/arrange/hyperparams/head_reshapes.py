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

    def cut(statement: Statement) -> Statement:
        match statement:
            case Assign(
                targets=(target,),
                expression=Method(
                    name="reshape", args=(*before, heads, SelfAttr(path=(name,)))
                ) as made,
            ) if name == head_dim:
                kept = None if any(map(_is_open, before)) else heads
                found = count(target, len(before)) if _is_open(heads) else kept
                if found is not None:
                    args = (*before, found, Literal(_OPEN))
                    return replace(statement, expression=replace(made, args=args))
        return statement

    return Block([cut(statement) for statement in block.statements], block.results)


def _is_open(size: Expression) -> bool:
    return isinstance(size, Literal) and size.value == _OPEN
