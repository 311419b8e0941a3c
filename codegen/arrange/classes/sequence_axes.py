"""Sequence lengths and position ids are computed from the input's shape.

`x.reshape(batch, 17, heads, -1)` of a row of 17 is `batch, length, _ = x.shape` and
`x.reshape(batch, length, heads, -1)`: as for rows of every length, and the same class.
"""

from __future__ import annotations

from collections.abc import Sequence

from burnish.codegen.arrange.analysis.shape_contracts import sizes_of, symbol
from burnish.codegen.program import (
    Assign,
    Attribute,
    Block,
    Call,
    ClassPlan,
    Expression,
    Literal,
    Method,
    Statement,
    Subscript,
    Value,
    exchanged,
    pruned,
)

_ROWS = 3
"""The axes of rows of features: batch, length, features."""


def with_lengths(plan: ClassPlan) -> None:
    """Let reshapes keep the batch and the length of a class's first rows, in place.

    Features that are cut into heads are cut into so many of them.
    """
    plan.block = _asked_first(plan).rebuilt(_by_heads)
    rows = next((v for v in plan.inputs if v.rank == _ROWS and not v.host), None)
    if rows is None or rows.shape is None or type(rows.shape[1]) is not int:
        return
    batch, number = rows.shape[:2]
    sizes = [Value("", "int64", (), host=True, nonnegative=True) for _ in range(2)]
    read: dict[int, Value] = {}

    def change(expression: Expression) -> Expression:
        made = expression.rebuilt(change)
        match made:
            case Method(
                target=Value(shape=(outer, int() as inner, *rest)),
                name="reshape",
                args=(first, Literal(value=int() as size), *last),
            ) if outer == batch and 1 < inner == size == number and _cuts(rest, last):
                if isinstance(first, Literal):
                    if batch is None or first.value not in (-1, batch):
                        return made
                    first = read.setdefault(0, sizes[0])
                    last = [*last[:-1], Literal(-1)]
                length = read.setdefault(1, sizes[1])
                return Method(made.target, "reshape", (first, length, *last))
        return made

    block = plan.block.rebuilt(change)
    if not read:
        return
    place = sum(map(_asks, block.statements))
    new = [
        Assign((read[axis],), (), Subscript(Attribute(rows, "shape"), (Literal(axis),)))
        for axis in sorted(read)
    ]
    statements = [*block.statements[:place], *new, *block.statements[place:]]
    plan.block = Block(statements, block.results)


def _asked_first(plan: ClassPlan) -> Block:
    """The block with sizes read from the inputs' shapes, at the start."""
    read: dict[Value, str] = {}
    for statement in plan.block.statements:
        size = symbol(statement.expression) if isinstance(statement, Assign) else None
        if size is not None and statement.targets[0].host:
            read[statement.targets[0]] = size
    tensors = [value for value in plan.inputs if not value.host]
    known = sizes_of(tensors, read)
    first: dict[str, Value] = {}
    same: dict[Expression, Expression] = {
        value: first.setdefault(read[value], value) for value in known
    }
    start: list[Statement] = [
        Assign((value,), (), known[value]) for value in first.values()
    ]
    rest = [s for s in plan.block.statements if not set(s.targets) & known.keys()]
    block = Block(rest, plan.block.results).rebuilt(exchanged(same))
    block = Block([*start, *block.statements], block.results)
    return pruned(block)  # of what was only asked for its size


def number_of_places(statement: Assign) -> Value | None:
    """How many places 0, 1, 2, ... it makes, where that is a number of the host."""
    match statement.expression:
        case Call(function="Tensor.arange", args=(Value(host=True) as number,)):
            return number
    return None


def _by_heads(expression: Expression) -> Expression:
    """`reshape(batch, time, -1, 8)` as `reshape(batch, time, 4, -1)`.

    Heads that are joined again are `reshape(batch, time, -1)`.
    """
    made = expression.rebuilt(_by_heads)
    match made:
        case Method(
            target=Value(shape=(*dims, int() as width)),
            name="reshape",
            args=(*rows, Literal(value=-1), Literal(value=int() as size)),
        ) if len(rows) == len(dims) == 2 and size > 0 and width % size == 0:
            if not all(map(_keeps, rows, dims)):
                return made
            return Method(
                made.target, "reshape", (*rows, Literal(width // size), Literal(-1))
            )
        case Method(
            target=Value(shape=(_, _, int() as count, int() as size)),
            name="reshape",
            args=(Value() as batch, Value() as length, Literal(value=int() as width)),
        ) if count * size == width:
            return Method(made.target, "reshape", (batch, length, Literal(-1)))
    return made


def _keeps(row: Expression, dim: object) -> bool:
    """Whether a reshape's size may be that of the axis: heads move, or rows are cut."""
    return row.value == dim if isinstance(row, Literal) else not isinstance(dim, int)


def _cuts(before: Sequence[object], after: Sequence[object]) -> bool:
    """Whether features are cut into heads, or heads joined again."""
    return sorted((len(before), len(after))) == [1, 2]


def _asks(statement: Statement) -> bool:
    """Whether it reads a size."""
    made = statement.expression if isinstance(statement, Assign) else None
    return isinstance(made, Subscript) and (
        isinstance(made.target, Attribute) and made.target.name == "shape"
    )
