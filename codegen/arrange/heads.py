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

    place: which of the block's statements it is.
    """

    place: int
    heads: int


def splits(plan: ClassPlan, dim: int) -> Iterator[Split]:
    """The cuts of a width into heads; none where the class cuts other widths too."""
    found = []
    for place, statement in enumerate(plan.block.statements):
        cut = _cut(statement)
        if cut is None:
            continue
        heads, size = cut
        if heads * size != dim:
            return
        found.append(Split(place, heads))
    yield from found


def _cut(statement: Statement) -> tuple[int, int] | None:
    """How many heads of which size a statement makes."""
    if not isinstance(statement, Assign) or len(statement.targets) != 1:
        return None
    made, shape = statement.expression, statement.targets[0].shape
    if not isinstance(made, Method) or made.name != "reshape" or shape is None:
        return None
    before = made.target.shape
    if len(shape) != 4 or len(made.args) != 4 or before is None or not before:
        return None
    heads, size, width = shape[-2], shape[-1], before[-1]
    if not (isinstance(heads, int) and isinstance(size, int)):
        return None
    written = [a.value for a in made.args if isinstance(a, Literal)]
    if -1 in written[:-2] or heads * size != width:
        return None
    return heads, size


def by_heads(block: Block, cut: list[Split]) -> Block:
    """The block with those cuts written as `(self.heads, -1)`."""
    statements = list(block.statements)
    for split in cut:
        statement = statements[split.place]
        assert isinstance(statement, Assign)
        made = statement.expression
        assert isinstance(made, Method)
        args = (*made.args[:-2], Own(("heads",)), Literal(-1))
        statements[split.place] = replace(
            statement, expression=replace(made, args=args)
        )
    return Block(statements, block.results)
