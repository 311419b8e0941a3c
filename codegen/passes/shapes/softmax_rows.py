"""Convert Softmax of opsets below 13 to a single axis, where its rows lie along one.

Before opset 13 Softmax, LogSoftmax and Hardmax took all axes from `axis` on (1 if the
node names none) as one row. Other nodes keep their opset, named on the node together
with the axis, so that later passes see which meaning it has. ONNX's converter of
versions flattens what such a node reads and shapes its result as that again.
"""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.ops.shapes.dims import axis_of
from burnish.codegen.passes import graph as g

ALONG_AN_AXIS = 13
"""The first opset whose softmax is along one axis."""
_OPERATORS = frozenset(("Hardmax", "LogSoftmax", "Softmax"))


def softmax_rows(model: ir.Model, account: Account) -> bool:
    """Give softmax along one axis today's opset, and others their own."""
    changed = False
    for node in g.nodes_of(model, *_OPERATORS):
        opset = g.version(model, node)
        if opset >= ALONG_AN_AXIS:
            changed |= _unflattened(node, account)
            continue
        axis = axis_of(node, 1)
        along = _axis_of_rows(node.inputs[0], axis)
        if along is not None:
            axis, opset = along, ALONG_AN_AXIS
            account.did("softmax of rows along one axis", g.label(node))
        changed |= node.version != opset
        node.version = opset
        node.attributes["axis"] = ir.AttrInt64("axis", axis)
    return changed


def _axis_of_rows(value: ir.Value | None, first: int) -> int | None:
    """The only axis from `first` on that may have several elements; None if two may."""
    dims = None if value is None or value.shape is None else [*value.shape]
    if dims is None or not -len(dims) <= first < len(dims):
        return -1 if first == -1 else None
    first %= len(dims)
    long = [axis for axis in range(first, len(dims)) if dims[axis] != 1]
    axis = long[0] if long else len(dims) - 1
    if len(long) > 1:
        return None
    return -1 if axis == len(dims) - 1 else axis


def _unflattened(node: ir.Node, account: Account) -> bool:
    """Whether Reshape(Softmax(Flatten(x)), Shape(x)) became a softmax of x."""
    flat = g.maker_of(node.inputs[0], "Flatten")
    readers = [reader for reader, _ in node.outputs[0].uses()]
    if flat is None or len(readers) != 1 or axis_of(node, -1) not in (-1, 1):
        return False
    (again,) = readers
    x = flat.inputs[0]
    if x is None or again.op_type != "Reshape" or again.domain:
        return False
    if g.made_for(again, again.inputs[0]) is not node or not _is_shape(again, x):
        return False
    axis = _axis_of_rows(x, axis_of(flat, 1))
    if axis is None:
        return False
    node.replace_input_with(0, x)
    node.attributes["axis"] = ir.AttrInt64("axis", axis)
    result = node.outputs[0]
    result.shape, result.type = x.shape, x.type
    g.forward(again, result)
    account.did("softmax of rows along one axis", g.label(node))
    return True


def _is_shape(again: ir.Node, x: ir.Value) -> bool:
    """Whether a Reshape makes the shape of x."""
    shape = g.maker_of(again.inputs[1], "Shape")
    if shape is not None and not shape.attributes and shape.inputs[0] is x:
        return True
    return g.proven_equal(again.outputs[0], x)
