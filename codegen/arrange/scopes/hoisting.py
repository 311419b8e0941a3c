"""Hoist non-trainable statements that several modules read out of the first one.

A mask that twelve layers share is left in the scope of the first one, which makes that
layer unlike the others. A non-trainable statement that is read outside its module
moves to the module around all its readers, if its operands are available there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from burnish.codegen.arrange.scopes.grouping import is_rounding, leaves
from burnish.codegen.program import (
    Assign,
    Expression,
    Layer,
    Scope,
    Statement,
    Value,
    Weight,
    operands,
    values_in,
)


def hoist(statements: Sequence[Statement], results: Sequence[Expression]) -> None:
    """Give shared statements the scope that they are shared in, in place."""
    base = _shallowest(statements)
    readers: dict[Value, list[Scope]] = defaultdict(list)
    for value in values_in(results):
        readers[value].append(())
    for statement in reversed(statements):
        if isinstance(statement, Assign) and not _holds_weights(statement):
            depth = len(statement.scope)
            for target in statement.targets:
                for scope in readers[target]:
                    depth = min(depth, common(statement.scope, scope))
            if _is_list(statement.scope, depth):
                depth -= 1  # a model that is a list itself has nothing around it
            if base[id(statement)] <= depth:
                statement.scope = statement.scope[:depth]
        for value in operands(statement):
            readers[value].append(statement.scope)


def _shallowest(statements: Sequence[Statement]) -> dict[int, int]:
    """The smallest depth of scope at which each statement's operands can be had."""
    makers: dict[Value, Statement] = {}
    base: dict[int, int] = {}
    for statement in statements:
        depth = 0
        for value in operands(statement):
            maker = makers.get(value)
            if maker is not None:
                shared = common(statement.scope, maker.scope)
                depth = max(depth, min(shared, base[id(maker)]))
        if not isinstance(statement, Assign) or _holds_weights(statement):
            depth = len(statement.scope)
        elif any(isinstance(e, Weight) for e in leaves(statement)):
            depth = max(depth, _least(statement.scope))
        base[id(statement)] = depth
        makers.update((target, statement) for target in statement.targets)
    return base


def common(one: Scope, other: Scope) -> int:
    """How many levels two scopes share."""
    depth = 0
    for a, b in zip(one, other, strict=False):
        if (a.name, a.call) != (b.name, b.call):
            break
        depth += 1
    return depth


def _is_list(scope: Scope, depth: int) -> bool:
    """Whether the module at that depth is a list or a Sequential."""
    if depth == len(scope):
        return False
    named = depth > 0 and scope[depth - 1].kind == "Sequential"
    return named or scope[depth].name.isdigit()


def _least(scope: Scope) -> int:
    """The minimal depth of a hoisted buffer: any, if it is in an item of a list."""
    in_list = any(level.name.isdigit() for level in scope)
    return 0 if in_list else len(scope)


def _holds_weights(statement: Statement) -> bool:
    """Whether a statement is trainable; buffers may move to another module."""
    return any(
        (isinstance(e, Layer) and not is_rounding(e))
        or (isinstance(e, Weight) and e.trained)
        for e in leaves(statement)
    )
