"""Rewrite integer products as float products of dequantized operands."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.quantized._values import dequantized, put, replace

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
        several = g.unwrap(g.constant(w_scale)).size > 1
        if several and g.constant(w) is None:
            continue
        rank = None if w is None or w.shape is None else len(w.shape)
        if rank is None:
            continue
        axis = 0 if plain == "Conv" else rank - 1
        inputs = [
            dequantized(node, [x, x_scale, x_zero]),
            dequantized(node, [w, w_scale, w_zero], axis if several else None),
        ]
        if len(node.inputs) > _BIAS and node.inputs[_BIAS] is not None:
            inputs.append(_bias(model, node))
        y = put(node, plain, inputs)
        for attribute in node.attributes.values():
            y.attributes.add(attribute)
        small = node.outputs[0]
        y.outputs[0].dtype, y.outputs[0].shape = ir.DataType.FLOAT, small.shape
        again = put(node, "QuantizeLinear", [y.outputs[0], y_scale, y_zero])
        account.did(f"{node.op_type} between roundings", g.label(node))
        replace(node, again.outputs[0])
        changed = True
    return changed


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
    return dequantized(node, [bias, scale, None], 0 if step.size > 1 else None)
