"""Fingerprints of statements: operators and data flow without names and sizes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import fields

from burnish.codegen.program import (
    Block,
    Constant,
    Expression,
    Host,
    Layer,
    Literal,
    Loop,
    Statement,
    Value,
    Weight,
)

Numbers = dict[Value, int]


def form(statements: Iterable[Statement]) -> Hashable:
    """Equal for statements that do the same in the same order, whatever their sizes."""
    numbers: Numbers = {}
    return tuple(_statement(statement, numbers) for statement in statements)


def _statement(statement: Statement, numbers: Numbers) -> Hashable:
    inside: list[Hashable] = [type(statement).__name__]
    inside += [_form(e, numbers) for e in statement.expressions()]
    if isinstance(statement, Loop):
        inside.append(len(statement.carried))
    inside += [_block(block, numbers) for block in statement.blocks()]
    inside += [numbers.setdefault(t, len(numbers)) for t in statement.targets]
    return tuple(inside)


def _block(block: Block, numbers: Numbers) -> Hashable:
    return (
        tuple(_statement(s, numbers) for s in block.statements),
        tuple(_form(r, numbers) for r in block.results),
    )


def _form(expression: Expression, numbers: Numbers) -> Hashable:
    match expression:
        case Value():
            return numbers.setdefault(expression, len(numbers)), expression.host
        case Weight():
            return "weight", expression.trained, len(expression.shape)
        case Constant(array=array):
            number = array.item() if array.dtype.kind == "f" and array.size == 1 else 0
            return "constant", array.dtype.name, array.ndim, repr(number)
        case Host(array=array):
            return "host", array.ndim, *(_form(e, numbers) for e in array.ravel())
        case Literal(value=value):
            return _plain(value)
        case Layer(kind=kind, options=options, weights=weights, inputs=inputs):
            fixed = [(n, _plain(v)) for n, v in options.items() if not _is_size(v)]
            given = tuple(_form(e, numbers) for e in inputs)
            held = tuple(n for n in weights if not n.startswith("on_input"))
            return kind, tuple(fixed), held, given
    parts: list[Hashable] = [type(expression).__name__]
    for entry in fields(expression):  # type: ignore[arg-type]
        parts.append(_any(getattr(expression, entry.name), numbers))
    return tuple(parts)


def _any(part: object, numbers: Numbers) -> Hashable:
    if isinstance(part, Expression):
        return _form(part, numbers)
    if isinstance(part, tuple | list):
        return tuple(_any(item, numbers) for item in part)
    return _plain(part)


def _plain(value: object) -> Hashable:
    """A constant; all integers are alike."""
    if isinstance(value, tuple | list):
        return tuple(map(_plain, value))
    return "size" if _is_size(value) else repr(value)


def _is_size(value: object) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_size, value))
    return type(value) is int
