"""Where a class cuts its features into heads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from burnish.codegen.program import (
    Assign,
    Block,
    ClassPlan,
    Literal,
    Method,
    Own,
    Statement,
)


@dataclass(frozen=True, eq=False)
class Split:
    """`x.reshape(..., heads, size)` of features that are `heads * size` wide.

    place: which of the block's statements it is. is_open: another axis is written as
    -1, so that the size of a head has to be said.
    """

    place: int
    heads: int
    is_open: bool


def splits(plan: ClassPlan, dim: int) -> Iterator[Split]:
    """The cuts of a width into heads; none where the class cuts other widths too."""
    found = []
    for place, statement in enumerate(plan.block.statements):
        cut = _cut(statement)
        if cut is None:
            continue
        heads, size, is_open = cut
        if heads * size != dim:
            return
        found.append(Split(place, heads, is_open))
    yield from found


def _cut(statement: Statement) -> tuple[int, int, bool] | None:
    """How many heads of which size a statement makes; whether another axis is -1."""
    if not isinstance(statement, Assign) or len(statement.targets) != 1:
        return None
    made, shape = statement.expression, statement.targets[0].shape
    if not isinstance(made, Method) or made.name != "reshape" or shape is None:
        return None
    given = made.target.shape
    if len(shape) != 4 or len(made.args) != 4 or not given:
        return None
    heads, size, width = shape[-2], shape[-1], given[-1]
    if not (isinstance(heads, int) and isinstance(size, int)):
        return None
    if heads * size != width:
        return None
    before = made.args[:-2]
    return heads, size, any(isinstance(a, Literal) and a.value == -1 for a in before)


def by_heads(block: Block, cut: list[Split]) -> Block:
    """The block with those cuts written as `(self.heads, -1)`, or with the size."""
    statements = list(block.statements)
    for split in cut:
        statement = statements[split.place]
        assert isinstance(statement, Assign)
        made = statement.expression
        assert isinstance(made, Method)
        size = Own(("head_dim",)) if split.is_open else Literal(-1)
        args = (*made.args[:-2], Own(("heads",)), size)
        statements[split.place] = replace(
            statement, expression=replace(made, args=args)
        )
    return Block(statements, block.results)
