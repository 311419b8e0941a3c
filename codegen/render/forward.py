"""Lay out the body of `forward`: which expressions nest, which get a variable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from burnish.codegen.program import (
    Assign,
    Block,
    Call,
    ClassPlan,
    ModuleCall,
    Value,
    attributes_used,
)
from burnish.codegen.render.body import function_body
from burnish.codegen.render.layout import WIDTH
from burnish.codegen.render.names import named
from burnish.codegen.render.roles import Roles
from burnish.codegen.render.tidy import Nested, tidied
from burnish.codegen.render.words import text

_SEVERAL = 16
"""More calls than this fit on no line."""


@dataclass(frozen=True)
class Body:
    """A body with its values' names, and what makes its lines too long.

    uses: the module's attributes in the order in which the lines take them.
    """

    names: dict[Value, str]
    lines: list[str]
    crowded: set[Value]
    uses: list[str]


def forward(
    plan: ClassPlan, is_model: bool, roles: Roles, types: Mapping[Value, str]
) -> Body:
    """The body of `forward`; what makes a line too long gets a statement of its own."""
    steps = set(_steps(plan.block))
    pinned = set(steps)
    body = _tried(plan, is_model, pinned, roles, types)
    while body.crowded:
        pinned |= body.crowded
        body = _tried(plan, is_model, pinned, roles, types)
    results = plan.block.results if len(plan.block.results) <= _SEVERAL else []
    for value in [v for v in results if v in pinned]:
        if value in steps:
            continue
        fewer = pinned - {value}
        tried = _tried(plan, is_model, fewer, roles, types)
        if not tried.crowded:
            pinned, body = fewer, tried
    return body


def _steps(block: Block) -> Iterable[Value]:
    """Inputs and outputs of method stubs; each call gets a line of its own."""
    for statement in block.statements:
        made = statement.expression if isinstance(statement, Assign) else None
        if isinstance(made, ModuleCall) and isinstance(made.target, Call):
            yield from (t for t in statement.targets if t not in block.results)
            yield from (x for x in made.inputs if isinstance(x, Value))


def _tried(
    plan: ClassPlan,
    is_model: bool,
    pinned: set[Value],
    roles: Roles,
    types: Mapping[Value, str],
) -> Body:
    block, absorbed = tidied(plan.block, pinned)
    names = named(plan.inputs, block, keep_inputs=is_model, roles=roles, types=types)
    parts = function_body(block, names, 8)
    crowded = {
        value
        for lines, place in parts
        if _too_long(lines, block, place)
        for value in _middle(lines, absorbed.get(place, {}), plan.block, names)
    }
    lines = [line for lines, _ in parts for line in lines]
    return Body(names, lines, crowded, list(dict.fromkeys(attributes_used(block))))


def _middle(
    lines: list[str], nested: Nested, block: Block, names: dict[Value, str]
) -> list[Value]:
    """Choose the subexpression of a long statement to assign first: about half of it.

    Of many parts the longer half goes at once: thousands are no thousand trials. Of
    many results each goes, with what it is made of.
    """
    if len(block.results) > _SEVERAL and any(v in nested for v in block.results):
        return [value for value in nested if value in block.results]
    lengths = {value: len(text(part, names)) for value, part in nested.items()}
    if len(nested) > 2 * _SEVERAL:
        return sorted(nested, key=lengths.__getitem__)[len(nested) // 2 :]
    half = sum(len(line.strip()) for line in lines) / 2

    def unfit(value: Value) -> tuple[bool, float]:
        return value in block.results, abs(lengths[value] - half)

    return sorted(nested, key=unfit)[:1]


def _too_long(lines: list[str], block: Block, place: int) -> bool:
    """Whether a broken statement contains an expression worth a variable.

    What is returned may have its arguments on a line of their own; control flow has
    lines of its own anyway.
    """
    if any(len(line) > WIDTH for line in lines):
        return True
    if place == len(block.statements):
        grouped = lines[0].endswith("return (")  # a sum or product in brackets
        return len(lines) > 1 and (len(lines) != 3 or grouped)
    return len(lines) > 1 and isinstance(block.statements[place], Assign)
