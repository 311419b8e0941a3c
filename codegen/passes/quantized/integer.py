"""Rewrite integer products as float products of dequantized operands."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.quantized._values import put, replace

_BIAS = 8  # place among the inputs of QLinearConv
_PRODUCTS = {"QLinearConv": "Conv", "QLinearMatMul": "MatMul"}


def integer_operators(model: ir.Model, account: Account) -> bool:
    """Dequantize the inputs, and quantize the outputs."""
    changed = False
    for node in g.nodes_of(model, *_PRODUCTS):
        plain = _PRODUCTS[node.op_type]
        x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = node.inputs[:8]
        if any(g.constant(v) is None for v in (x_scale, w_scale, y_scale)):
            continue
        if g.constant(w_scale).size > 1 and g.constant(w) is None:  # type: ignore[union-attr]
            continue
        rank = None if w is None or w.shape is None else len(w.shape)
        if rank is None:
            continue
        axis = 0 if plain == "Conv" else rank - 1
        inputs = [
            _dequantized(node, [x, x_scale, x_zero], None),
            _dequantized(node, [w, w_scale, w_zero], axis),
        ]
        if len(node.inputs) > _BIAS and node.inputs[_BIAS] is not None:
            inputs.append(_bias(model, node))
        y = put(node, plain, inputs)
        for attribute in node.attributes.values():
            y.attributes.add(attribute)
        small = node.outputs[0]
        y.outputs[0].type, y.outputs[0].shape = _FLOAT, small.shape
        again = put(node, "QuantizeLinear", [y.outputs[0], y_scale, y_zero])
        account.did(f"{node.op_type} between roundings", g.label(node))
        replace(node, again.outputs[0])
        changed = True
    return changed


_FLOAT = ir.TensorType(ir.DataType.FLOAT)


def _dequantized(
    node: ir.Node, parts: list[ir.Value | None], axis: int | None
) -> ir.Value:
    value, scale = parts[0], g.constant(parts[1])
    made = put(node, "DequantizeLinear", parts)
    if axis is not None and scale is not None and scale.size > 1:
        made.attributes.add(ir.AttrInt64("axis", axis))
    made.outputs[0].type = _FLOAT
    made.outputs[0].shape = None if value is None else value.shape
    return made.outputs[0]


def _bias(model: ir.Model, node: ir.Node) -> ir.Value:
    """Whole numbers of the product of both scales."""
    x, w = (g.unwrap(g.constant(node.inputs[place])).numpy() for place in (1, 4))
    step = x.reshape(()) * w.reshape(-1)
    bias = node.inputs[_BIAS]
    count = 1 if bias is None or bias.shape is None else bias.shape[0]
    name = "" if bias is None else bias.name
    if step.size == 1 and isinstance(count, int):
        step = np.full(count, step[0])
    scale = g.new_constant(model, f"{name}_scale", step.astype(np.float32))
    return _dequantized(node, [bias, scale, None], 0)
