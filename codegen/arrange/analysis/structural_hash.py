"""Structural hash of a class: equal for equal constructors and forwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from burnish.codegen.program import (
    Block,
    ClassPlan,
    Expression,
    Literal,
    Statement,
    Value,
)


def signature(plan: ClassPlan) -> str:
    """Text that is equal for plans that say the same, whatever values are called."""
    numbers: dict[Value, int] = {}
    inputs = [_shape_of(value, numbers) for value in plan.inputs]
    members = [(name, _text(part, numbers)) for name, part in plan.members]
    shared = [_any(pair, numbers) for pair in plan.shared]
    return repr((plan.base, inputs, members, shared, _block(plan.block, numbers)))


def expression_hash(expression: Expression) -> Any:
    """A structural hash of one expression."""
    return _text(expression, {})


def hash_under(
    part: Statement | list[Expression], known: Mapping[Value, Value], *, mine: bool
) -> Any:
    """A structural hash of statements or results, comparable between two classes.

    known: what values of the one class are in the other. mine: the part is of the one.
    """
    places: dict[Value, int] = {}
    for theirs in known.values():
        places.setdefault(theirs, len(places))
    numbers = {one: places[two] for one, two in known.items()} if mine else places
    while len(numbers) < len(known):
        numbers[Value()] = -1
    if isinstance(part, Statement):
        return _statement(part, numbers)
    return [_text(result, numbers) for result in part]


def outline(statements: Iterable[Statement]) -> tuple[str, list[Value]]:
    """Text that is equal where the same is done, and the values by first use."""
    numbers: dict[Value, int] = {}
    text = repr([_statement(statement, numbers) for statement in statements])
    return text, list(numbers)


def _shape_of(value: Value, numbers: dict[Value, int]) -> Any:
    return numbers.setdefault(value, len(numbers)), value.host


def _block(block: Block, numbers: dict[Value, int]) -> Any:
    statements = [_statement(s, numbers) for s in block.statements]
    return statements, [_text(r, numbers) for r in block.results]


def _statement(statement: Statement, numbers: dict[Value, int]) -> Any:
    parts: list[Any] = [type(statement).__name__]
    for entry in fields(statement):
        if entry.name == "scope":
            continue
        parts.append(_any(getattr(statement, entry.name), numbers))
    return parts


def _any(part: Any, numbers: dict[Value, int]) -> Any:
    if isinstance(part, Expression):
        return _text(part, numbers)
    if isinstance(part, Block):
        return _block(part, numbers)
    if isinstance(part, tuple):
        return [_any(item, numbers) for item in part]
    return repr(part)


def _text(expression: Expression, numbers: dict[Value, int]) -> Any:
    if isinstance(expression, Value):
        return _shape_of(expression, numbers)
    if isinstance(expression, Literal):
        return repr(expression.value)
    parts: list[Any] = [type(expression).__name__]
    for entry in fields(expression):  # type: ignore[arg-type]
        parts.append(_any(getattr(expression, entry.name), numbers))
    return parts
