"""Remove operators that hand their input on: equal shape, equal dtype, equal numbers.

Dropout is not one of them (it acts in training), and neither is `x * one` where `one`
has dimensions (it may broadcast) or is a weight that happens to be one.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from burnish.codegen import constants
from burnish.codegen.errors import Explain
from burnish.codegen.passes.graph import (
    all_nodes,
    attribute,
    constant,
    forward,
    integers,
    proven_equal,
    scalar,
)


def drop_identities(model: ir.Model, explain: Explain) -> bool:
    """Forward the input of every node that is proven to change nothing."""
    changed = False
    for node in all_nodes(model):
        test = _TESTS.get(node.op_type) if node.domain == "" else None
        if test is None or not node.inputs or node.inputs[0] is None:
            continue
        if test(node) and forward(node, node.inputs[0]):
            explain(f"node {node.name!r} ({node.op_type}) changes nothing: dropped")
            changed = True
    return changed


def _always(_node: ir.Node) -> bool:
    return True


def _alone(node: ir.Node) -> bool:
    return len(node.inputs) == 1


def _same_dtype(node: ir.Node) -> bool:
    source = node.inputs[0]
    assert source is not None
    return source.dtype is not None and attribute(node, "to", None) == source.dtype


def _same_shape(node: ir.Node) -> bool:
    source = node.inputs[0]
    assert source is not None
    return proven_equal(source, node.outputs[0])


def _same_order(node: ir.Node) -> bool:
    source, perm = node.inputs[0], node.attributes.get("perm")
    assert source is not None
    if perm is None:
        return source.shape is not None and len(source.shape) < 2
    order = list(perm.as_ints())
    return order == sorted(order)


def _flat_already(node: ir.Node) -> bool:
    source = node.inputs[0]
    assert source is not None
    two = source.shape is not None and len(source.shape) == 2
    return two and attribute(node, "axis", 1) in (1, -1)


def _all_of(number: int) -> Callable[[ir.Node], bool]:
    def test(node: ir.Node) -> bool:
        found = integers(node.inputs[1]) if len(node.inputs) > 1 else None
        return found is not None and all(i == number for i in found)

    return test


def _expands_nothing(node: ir.Node) -> bool:
    return _same_shape(node) or (_all_of(1)(node) and _rank_covers(node))


def _rank_covers(node: ir.Node) -> bool:
    source, shape = node.inputs[0], constant(node.inputs[1])
    assert source is not None
    if source.shape is None or shape is None:
        return False
    return shape.size <= len(source.shape)


def _neutral(number: float) -> Callable[[ir.Node], bool]:
    """x with the second operand a number that changes no x, and is no weight."""

    def test(node: ir.Node) -> bool:
        if len(node.inputs) != 2 or node.inputs[0] is None:
            return False
        other = constant(node.inputs[1])
        rank_zero = other is not None and len(other.shape) == 0
        fits = rank_zero and scalar(node.inputs[1]) == number
        return fits and not constants.trains(node.inputs[1])

    return test


_TESTS: dict[str, Callable[[ir.Node], bool]] = {
    "Identity": _always,
    "Cast": _same_dtype,
    "Concat": _alone,
    "Max": _alone,
    "Mean": _alone,
    "Min": _alone,
    "Sum": _alone,
    "Expand": _expands_nothing,
    "Flatten": _flat_already,
    "Pad": _all_of(0),
    "Reshape": _same_shape,
    "Tile": _all_of(1),
    "Transpose": _same_order,
    "Div": _neutral(1),
    "Mul": _neutral(1),
    "Pow": _neutral(1),
    "Sub": _neutral(0),
}
