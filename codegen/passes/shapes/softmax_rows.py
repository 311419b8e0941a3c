"""Write the softmax of older opsets along one axis, where it is along the last one.

Before opset 13 Softmax, LogSoftmax and Hardmax took all axes from `axis` on (1 if the
node names none) as one row. Other nodes keep their opset, named on the node together
with the axis, so that later passes see which meaning it has.
"""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.ops.shapes.dims import axis_of, declared
from burnish.codegen.passes.graph import all_nodes, label, version

ALONG_AN_AXIS = 13
"""The first opset whose softmax is along one axis."""
_OPERATORS = frozenset(("Hardmax", "LogSoftmax", "Softmax"))


def softmax_rows(model: ir.Model, account: Account) -> bool:
    """Give softmax over the last axis today's opset, and others their own."""
    changed = False
    for node in all_nodes(model):
        opset = version(model, node)
        if node.op_type not in _OPERATORS or node.domain or opset >= ALONG_AN_AXIS:
            continue
        axis, dims = axis_of(node, 1), declared(node.inputs[0])
        if dims is not None and axis % len(dims) == len(dims) - 1:
            axis, opset = -1, ALONG_AN_AXIS
            account.did("softmax of rows along the last axis", label(node))
        changed |= node.version != opset
        node.version = opset
        node.attributes["axis"] = ir.AttrInt64("axis", axis)
    return changed
