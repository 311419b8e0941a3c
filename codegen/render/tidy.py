"""Nest single-use expressions where they are used: `self.fc2(ops.gelu(x))`."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TypeAlias

from burnish.codegen.program import (
    Assign,
    Attribute,
    Block,
    Expression,
    If,
    Literal,
    Loop,
    SelfAttr,
    Slice,
    Statement,
    Subscript,
    Value,
    every_expression,
)
from burnish.codegen.render.names import size_name

_DEEPEST = 3
_LIGHT = frozenset(
    {"Attribute", "Subscript", "Slice", "ListOrTuple", "BinOp", "UnaryOp"}
)
_DEEPEST_ON_HOST = 6
_LONGEST = 24
"""More operators one in another than this fit on no line."""


Nested: TypeAlias = dict[Value, Expression]
"""The values that are nested in a statement, with their expressions."""


def tidied(block: Block, pinned: set[Value]) -> tuple[Block, dict[int, Nested]]:
    """The block with expressions nested, and what each statement took in.

    pinned: values that keep a statement of their own. The second result is by the
    place of the statement in the block; the place behind the last is the results'.
    """
    uses = Counter(every_expression(block))
    return _nested(block, uses, pinned, returned=True)


def _nested(
    block: Block,
    uses: Counter[Expression],
    pinned: set[Value],
    returned: bool = False,
) -> tuple[Block, dict[int, Nested]]:
    ready: dict[Value, Expression] = {}
    taken: list[Nested] = []
    statements: list[Statement | None] = []
    places: dict[Value, int] = {}

    def filled(expression: Expression, into: Nested, room: int) -> Expression:
        """The expression with single-use values replaced, at most `room` deep."""
        if isinstance(expression, Value):
            held = ready.get(expression)
            if held is None or depth(held) > room or _levels(held) >= _LONGEST:
                return expression
            into[expression] = held
            into.update(taken[places[expression]])
            statements[places[expression]] = None
            return held
        less = room if type(expression).__name__ in _LIGHT else room - 1
        return expression.rebuilt(lambda child: filled(child, into, less))

    for statement in _sizes_together(block.statements, uses):
        into: Nested = {}
        statement, inner = _with_blocks(statement, uses, pinned)
        if isinstance(statement, Assign):
            room = _DEEPEST_ON_HOST if statement.targets[0].host else _DEEPEST
            expression = filled(statement.expression, into, room)
            statement = replace(statement, expression=expression)
            target = statement.targets[0]
            if (
                len(statement.targets) == 1
                and uses[target] == 1
                and target not in pinned
            ):
                ready[target] = expression
                places[target] = len(statements)
        elif isinstance(statement, If):
            condition = filled(statement.condition, into, _DEEPEST)
            statement = replace(statement, condition=condition)
        elif isinstance(statement, Loop):
            heads = (statement.count, statement.items, statement.condition)
            given = [head and filled(head, into, _DEEPEST) for head in heads]
            statement = replace(
                statement, count=given[0], items=given[1], condition=given[2]
            )
        statements.append(statement)
        taken.append(into | inner)
    into = {}
    results = block.results
    if returned and (last := _handed_on(statements, results)):
        results, into, statements[-1] = [last.expression], dict(taken[-1]), None
    results = [filled(result, into, _DEEPEST) for result in results]
    kept = [i for i, statement in enumerate(statements) if statement is not None]
    absorbed = {new: taken[old] for new, old in enumerate(kept)}
    absorbed[len(kept)] = into
    made = Block([s for s in statements if s is not None], results)
    return made, absorbed


# --- sizes ---


def _sizes_together(
    statements: list[Statement], uses: Counter[Expression]
) -> list[Statement]:
    """`batch, time, _ = x.shape`, where several sizes of one tensor are named."""
    asked: dict[Value, dict[int, Assign]] = {}
    for statement in statements:
        if not isinstance(statement, Assign) or uses[statement.targets[0]] < 2:
            continue
        if (place := _size(statement)) is not None:
            asked.setdefault(place[0], {}).setdefault(place[1], statement)
    made: dict[int, Assign] = {}
    gone: set[int] = set()
    for tensor, sizes in asked.items():
        together = _unpacked(tensor, sizes) if len(sizes) > 1 else None
        if together is not None:
            first, *others = map(id, sizes.values())
            made[first] = together
            gone.update(others)
    return [made.get(id(s), s) for s in statements if id(s) not in gone]


def _size(statement: Assign) -> tuple[Value, int] | None:
    match statement.expression:
        case Subscript(
            target=Attribute(target=Value() as tensor, name="shape"),
            keys=(Literal(value=int() as axis),),
        ) if axis >= 0 and len(statement.targets) == 1:
            return tensor, axis
    return None


def _unpacked(tensor: Value, sizes: dict[int, Assign]) -> Assign | None:
    """The sizes of some neighbouring axes at once; None if others are between."""
    first, last = min(sizes), max(sizes)
    if tensor.rank is None or last - first + 1 != len(sizes):
        return None
    shape: Expression = Attribute(tensor, "shape")
    targets = [sizes[axis].targets[0] for axis in sorted(sizes)]
    for axis, target in zip(sorted(sizes), targets, strict=True):
        target.hint = size_name(sizes[axis].expression) or target.hint
    if first == 0 and tensor.rank - last <= 2:
        targets += [Value(host=True) for _ in range(tensor.rank - last - 1)]
    elif first == 0:
        shape = Subscript(shape, (Slice(None, Literal(last + 1)),))
    elif last == tensor.rank - 1:
        shape = Subscript(shape, (Slice(Literal(-len(sizes))),))
    else:
        return None
    return Assign(tuple(targets), next(iter(sizes.values())).scope, shape)


def _handed_on(
    statements: list[Statement | None], results: list[Expression]
) -> Assign | None:
    """`a, b = f(x)` before `return a, b`, which says as much as `return f(x)`."""
    last = statements[-1] if statements else None
    if isinstance(last, Assign) and len(results) > 1 and list(last.targets) == results:
        return last
    return None


def _with_blocks(
    statement: Statement, uses: Counter[Expression], pinned: set[Value]
) -> tuple[Statement, Nested]:
    """The statement with its blocks tidied, and the values nested inside them."""
    tidy = [_nested(block, uses, pinned) for block in statement.blocks()]
    inside: Nested = {}
    for _, absorbed in tidy:
        for nested in absorbed.values():
            inside.update(nested)
    blocks = [block for block, _ in tidy]
    if isinstance(statement, If):
        statement = replace(statement, then=blocks[0], otherwise=blocks[1])
    elif isinstance(statement, Loop):
        statement = replace(statement, body=blocks[0])
    return statement, inside


def _levels(expression: Expression) -> int:
    """How deep an expression nests, operators included."""
    return 1 + max(map(_levels, expression.children()), default=0)


def depth(expression: Expression) -> int:
    """How deep calls nest; names and numbers are 0, `x.shape[0]` too."""
    if isinstance(expression, Value | Literal | SelfAttr):
        return 0
    inner = max(map(depth, expression.children()), default=0)
    light = type(expression).__name__ in _LIGHT
    return inner + (0 if light else 1)
