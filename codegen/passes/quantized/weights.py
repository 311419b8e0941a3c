"""Dequantize weights of few bits lazily: parameters that keep the file's codes."""

from __future__ import annotations

import re

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.passes.graph import (
    all_nodes,
    constant,
    forward,
    initializer,
    order_of,
)
from burnish.codegen.passes.quantized._values import is_small
from burnish.codegen.weights.dequantized import Dequantized
from burnish.codegen.weights.origin import computed

_ADDED = re.compile(r"(_quantized|_Q4|_Q8|_DQ)+(_\d+)?$")
_STORED = frozenset(
    ir.DataType[name]
    for name in ("INT16", "UINT16", "INT32", "FLOAT8E4M3FN", "FLOAT8E5M2")
)
"""Types of codes whose values are stored in their place."""


def dequantize_weights(model: ir.Model, account: Account) -> bool:
    """Replace every DequantizeLinear of the same constants by one weight."""
    made: dict[object, ir.Value] = {}
    changed = False
    for node in all_nodes(model):
        if node.op_type != "DequantizeLinear" or node.domain or not _fits(node):
            continue
        if node.outputs[0].is_graph_output():
            continue
        key = *node.inputs, *sorted((k, a.value) for k, a in node.attributes.items())
        if key not in made:
            made[key] = _weight(model, node)
            account.did("weight of few bits", made[key].name or "")
        changed |= forward(node, made[key])
    for node in all_nodes(model):
        if node.op_type == "Transpose" and not node.domain:
            _turn(model, node)
    return changed


def _turn(model: ir.Model, node: ir.Node) -> None:
    """Read a weight in another order of its axes, not a copy of it."""
    tensor, output = constant(node.inputs[0]), node.outputs[0]
    if not isinstance(tensor, Dequantized) or output.is_graph_output():
        return
    order = order_of(node, tensor.shape.rank())
    if order is None:
        return
    shape = ir.Shape([tensor.shape.numpy()[axis] for axis in order])

    def read() -> ir.TensorProtocol:
        return ir.tensor(np.transpose(tensor.numpy(), order), dtype=tensor.dtype)

    like = ir.Value(name=tensor.name)
    transposed = ir.LazyTensor(read, tensor.dtype, shape, name=tensor.name)
    forward(node, initializer(model, like, transposed, trains=True))


def _fits(node: ir.Node) -> bool:
    codes, scales = constant(node.inputs[0]), constant(node.inputs[1])
    given = node.inputs[2] if len(node.inputs) > 2 else None
    if codes is None or scales is None or (given is not None and not constant(given)):
        return False
    if node.attributes.get_int("output_dtype", 0) not in (0, scales.dtype):
        return False
    known = is_small(node.inputs[0]) or codes.dtype in _STORED
    block = node.attributes.get_int("block_size", 0)
    return known and (len(scales.shape) <= 1 or block > 0)


def _weight(model: ir.Model, node: ir.Node) -> ir.Value:
    codes, scales = constant(node.inputs[0]), constant(node.inputs[1])
    assert node.inputs[0] is not None
    assert codes is not None
    assert scales is not None
    zeros = constant(node.inputs[2]) if len(node.inputs) > 2 else None
    name = _name(model, node)
    axis = node.attributes.get_int("axis", 1)
    block = node.attributes.get_int("block_size", 0)
    tensor: ir.TensorProtocol = Dequantized(name, codes, scales, zeros, axis, block)
    alone = codes.size == 1
    if alone or not is_small(node.inputs[0]):
        tensor = _plain(tensor)
    return initializer(model, ir.Value(name=name), tensor, trains=not alone)


def _plain(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    """The dequantized values as a weight of their own."""

    def read() -> ir.TensorProtocol:
        return ir.tensor(np.asarray(tensor.numpy()), dtype=tensor.dtype)

    return computed(read(), read)


def _name(model: ir.Model, node: ir.Node) -> str:
    """The author's name of the weight, where the quantizer left it."""
    codes, output = node.inputs[0], node.outputs[0]
    assert codes is not None
    name = _ADDED.sub("", codes.name or "")
    free = name and name != codes.name and name not in model.graph.initializers
    return name if free else (output.name or codes.name or "weight")
