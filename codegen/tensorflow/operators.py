"""Rewrite TensorFlow's own operators, which its exporter leaves, in ONNX's.

Erfc is 1 - erf, which TensorFlow makes of a GELU; of an opposite it is 1 + erf.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from burnish.codegen.passes import graph as g


def rewrite_operators(model: ir.Model) -> None:
    """Write what ONNX has no operator for with those that it has, in place."""
    for node in g.all_nodes(model):
        if node.op_type == "Erfc" and not node.domain and len(node.inputs) == 1:
            _write(model, node)


def _write(model: ir.Model, node: ir.Node) -> None:
    value = node.inputs[0]
    assert value is not None
    dtype = value.dtype or node.outputs[0].dtype or ir.DataType.FLOAT
    number = np.array(1, dtype.numpy())
    one = g.new_constant(model, f"{g.label(node)}/one", number)
    nodes: list[ir.Node] = []
    opposite = _opposite(value, nodes)
    erf = ir.Node("", "Erf", [opposite or value])
    nodes += [erf, ir.Node("", "Add" if opposite else "Sub", [one, erf.outputs[0]])]
    for each in nodes:
        each.name = node.name
        each.metadata_props.update(node.metadata_props)
        each.outputs[0].type, each.outputs[0].shape = value.type, value.shape
    end = nodes[-1].outputs[0]
    ir.convenience.replace_nodes_and_values(
        g.owner(node), node, [node], nodes, [node.outputs[0]], [end]
    )
    end.type, end.shape = end.type or value.type, end.shape or value.shape


def _opposite(value: ir.Value, nodes: list[ir.Node]) -> ir.Value | None:
    """The value's negation, with at most one more node."""
    if negated := g.maker_of(value, "Neg"):
        return negated.inputs[0]
    product = g.maker_of(value, "Mul")
    if product is None:
        return None
    for place, factor in enumerate(product.inputs):
        if negated := g.maker_of(factor, "Neg"):
            operands = [*product.inputs]
            operands[place] = negated.inputs[0]
            nodes.append(ir.Node("", "Mul", operands))
            return nodes[-1].outputs[0]
    return None
