"""Single-use expressions nest where they are used: `self.fc2(ops.gelu(x))`."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TypeAlias

from burnish.codegen.program import (
    Assign,
    Block,
    Expression,
    If,
    Literal,
    Loop,
    Own,
    Statement,
    Value,
    every_expression,
)

_DEEPEST = 3
_LIGHT = frozenset({"Attribute", "Item", "Slice", "Display", "Infix", "Prefix"})
_DEEPEST_ON_HOST = 6


Nested: TypeAlias = dict[Value, Expression]
"""The values that stand nested in a statement, and what they are there."""


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
            if held is None or depth(held) > room:
                return expression
            into[expression] = held
            into.update(taken[places[expression]])
            statements[places[expression]] = None
            return held
        less = room if type(expression).__name__ in _LIGHT else room - 1
        return expression.rebuilt(lambda child: filled(child, into, less))

    for statement in block.statements:
        into: Nested = {}
        statement, inner = _with_blocks(statement, uses, pinned)
        if isinstance(statement, Assign):
            room = _DEEPEST_ON_HOST if _on_host(statement) else _DEEPEST
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
        elif isinstance(statement, Loop) and statement.count is not None:
            count = filled(statement.count, into, _DEEPEST)
            statement = replace(statement, count=count)
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
    """The statement with its blocks tidied, and what was nested inside them."""
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


def _on_host(statement: Assign) -> bool:
    return statement.targets[0].host


def depth(expression: Expression) -> int:
    """How deep calls nest; names and numbers are 0, `x.shape[0]` too."""
    if isinstance(expression, Value | Literal | Own):
        return 0
    inner = max(map(depth, expression.children()), default=0)
    light = type(expression).__name__ in _LIGHT
    return inner + (0 if light else 1)
