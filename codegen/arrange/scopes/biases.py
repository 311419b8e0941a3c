"""Recover the scope of a product from its bias, which is added behind a rounding.

A quantized file rounds what a layer's matrix gives before it adds the bias; the matrix
may be one that an exporter has transposed and counted.
"""

from __future__ import annotations

from collections.abc import Sequence

from burnish.codegen.arrange.scopes.group_kind import named_module
from burnish.codegen.arrange.scopes.grouping import is_rounding, leaves
from burnish.codegen.program import BinOp, Flow, Layer, Level, Scope, Statement, Weight

_MATRICES = frozenset(("Conv1d", "Conv2d", "Conv3d", "Linear"))


def place_by_biases(statements: Sequence[Statement], flow: Flow) -> None:
    """Write the scopes of products, roundings and sums that have none."""
    for statement in statements:
        if statement.scope or not _is_product(statement):
            continue
        chain = [statement]
        while (reader := flow.only_reader(chain[-1])) is not None:
            chain.append(reader)
            if not any(map(_rounds, leaves(reader))):
                break
        if scope := _of_bias(chain[-1]):
            for each in chain:
                each.scope = each.scope or scope


def _is_product(statement: Statement) -> bool:
    found = [e for e in leaves(statement) if isinstance(e, Layer)]
    return len(found) == 1 and found[0].kind in _MATRICES


def _rounds(expression: object) -> bool:
    return isinstance(expression, Layer) and is_rounding(expression)


def _of_bias(statement: Statement) -> Scope:
    """The module that names the vector in a sum; () where there is none."""
    for expression in leaves(statement):
        if not isinstance(expression, BinOp) or expression.operator != "+":
            continue
        for side in (expression.left, expression.right):
            if isinstance(side, Weight) and len(side.shape) == 1 and side.trained:
                return tuple(map(Level, named_module(side)))
    return ()
