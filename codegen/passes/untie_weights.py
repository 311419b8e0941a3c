"""Give every module its own weight again where an exporter merged equal ones.

torch's older exporter keeps one of several equal initializers (fresh biases, say) and
writes `Identity` nodes that carry the names of the others. A copy under such a name is
a weight of its own; what the file itself uses twice stays one.
"""

from __future__ import annotations

import re

import onnx_ir as ir

from burnish.codegen import constants
from burnish.codegen.errors import Explain
from burnish.codegen.passes import graph as g

_PARAMETER = re.compile(r"[A-Za-z_]\w*(\.\w+)+")


def untie_weights(model: ir.Model, explain: Explain) -> bool:
    """Turn each Identity of a weight that is named like another one into that one."""
    changed = False
    for node in g.all_nodes(model):
        if node.domain != "" or node.op_type != "Identity":
            continue
        weight, output = node.inputs[0], node.outputs[0]
        name = output.name or ""
        tensor = weight.const_value if weight is not None else None
        if tensor is None or not constants.trains(weight) or output.is_graph_output():
            continue
        if not _PARAMETER.fullmatch(name):
            continue
        copy = _copy(tensor)
        output.name = None
        value = g.initializer(model, output, copy, trains=True)
        value.name = copy.name = name
        ir.convenience.replace_all_uses_with(output, value)
        g.owner(node).remove(node, safe=True)
        explain(f"weight {name!r} had been merged with an equal one: untied")
        changed = True
    return changed


def _copy(tensor: ir.TensorProtocol) -> ir.LazyTensor:
    """The same values, read where they are, under a name of their own."""
    shape = ir.Shape(tensor.shape.numpy())
    return ir.LazyTensor(lambda: tensor, tensor.dtype, shape)
