"""Hoist results that both branches of an If compute alike out of it.

Equal nodes of the branches get equal numbers, as in global value numbering: by
operator, attributes, and the numbers of their inputs; constants by content.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.passes import graph as g
from burnish.codegen.program import demand_order
from burnish.codegen.weights import constants

_BRANCHES = ("then_branch", "else_branch")
_Numbers = dict[ir.Value, Hashable]


def merge_branches(model: ir.Model, account: Account) -> bool:
    """Random results are not merged: a branch that does not run must not draw."""
    changed = False
    for node in reversed(g.all_nodes(model)):  # the innermost first
        if node.op_type == "If" and not node.domain and node.graph is not None:
            changed |= _merge(node, account)
    return changed


def _merge(node: ir.Node, account: Account) -> bool:
    branches = [node.attributes[name].as_graph() for name in _BRANCHES]
    then, other = branches
    classes: dict[Hashable, int] = {}
    first, second = (_numbered(branch, classes) for branch in branches)
    agreed = {
        place: a
        for place, (a, b) in enumerate(zip(then.outputs, other.outputs, strict=True))
        if _read(node.outputs[place]) and _number(a, first) == _number(b, second)
    }
    if not agreed:
        return False
    for branch in branches:
        kept = [v for place, v in enumerate(branch.outputs) if place not in agreed]
        branch.outputs.clear()
        branch.outputs.extend(kept)
    cone = _cone(then, agreed.values())
    moved = {
        number: value for value, number in first.items() if value.producer() in cone
    }
    for value, number in second.items():  # the other branch reads what moves
        if number in moved and value not in other.outputs:
            ir.convenience.replace_all_uses_with(value, moved[number])
    nodes = [each for each in then if each in cone]
    then.remove(nodes)
    g.owner(node).insert_before(node, nodes)
    _replace(node, agreed)
    if not then.outputs:
        g.detach_inputs([*then.all_nodes(), *other.all_nodes()])
    account.did("If whose branches agree", g.label(node))
    return True


def _replace(node: ir.Node, agreed: dict[int, ir.Value]) -> None:
    """An If of the results that are left, and an Identity for each that agreed.

    The Identity keeps the names of the model's outputs; drop_identities follows.
    """
    ends = {
        place: ir.Node("", "Identity", [value], name=f"{node.name}_{place}")
        for place, value in agreed.items()
    }
    count = len(node.outputs) - len(agreed)
    inputs, branches = node.inputs, node.attributes.values()
    rest = g.named_like(ir.Node("", "If", inputs, branches, num_outputs=count), node)
    left = iter(rest.outputs)
    made = [
        ends[place].outputs[0] if place in ends else next(left)
        for place in range(len(node.outputs))
    ]
    g.substitute(node, [*ends.values(), *([rest] if count else [])], made)


def _read(value: ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()


def _numbered(branch: ir.Graph, classes: dict[Hashable, int]) -> _Numbers:
    """The number of each value that the branch's own nodes make."""
    numbers: _Numbers = {}
    for node in branch:
        if node.op_type in g.RANDOM or any(True for _ in g.bodies(node)):
            continue
        if constants.makes_weight(node):
            continue
        inputs = tuple(_number(value, numbers) for value in node.inputs)
        attributes = tuple(sorted((a.name, _held(a)) for a in node.attributes.values()))
        key = (node.domain, node.op_type, node.version, attributes, inputs)
        for place, output in enumerate(node.outputs):
            numbers[output] = classes.setdefault((*key, place), len(classes))
    return numbers


def _number(value: ir.Value | None, numbers: _Numbers) -> Hashable:
    """A value's number; of a value from elsewhere its identity or content."""
    if value is None:
        return None
    if value in numbers:
        return numbers[value]
    tensor = g.constant(value)
    if tensor is None or constants.trains(value):
        return id(value)  # weights that happen to be equal are trained apart
    return _content(tensor)


def _held(attribute: Any) -> Hashable:
    """What an attribute holds: equal keys, equal values."""
    if attribute.type == ir.AttributeType.TENSOR:
        return _content(attribute.value)
    if attribute.type == ir.AttributeType.TENSORS:
        return id(attribute.value)
    if isinstance(attribute.value, np.ndarray):
        return attribute.type, attribute.value.tobytes()
    return repr(attribute.value)


def _content(tensor: ir.TensorProtocol) -> Hashable:
    """A tensor's dtype, shape and bytes; of text its identity."""
    if tensor.dtype == ir.DataType.STRING:
        return id(tensor)
    return (tensor.dtype, tuple(tensor.shape.numpy()), tensor.tobytes())


def _cone(branch: ir.Graph, results: Iterable[ir.Value]) -> set[ir.Node]:
    """The nodes of the branch that these values are computed from."""

    def makers(values: Iterable[ir.Value | None]) -> list[ir.Node]:
        found = map(g.maker_of, values)
        return [node for node in found if node is not None and node.graph is branch]

    return set(demand_order(makers(results), lambda node: makers(node.inputs)))
