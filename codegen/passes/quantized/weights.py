"""Dequantize weights of few bits lazily: parameters that keep the file's codes."""

from __future__ import annotations

import re

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.passes import graph as g
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
    for node in g.nodes_of(model, "DequantizeLinear"):
        if not _fits(node) or node.outputs[0].is_graph_output():
            continue
        key = *node.inputs, *sorted((k, a.value) for k, a in node.attributes.items())
        if key not in made:
            made[key] = _weight(model, node)
            account.did("weight of few bits", made[key].name or "")
        changed |= g.forward(node, made[key])
    for node in g.nodes_of(model, "Transpose"):
        _turn(model, node)
    return changed


def _turn(model: ir.Model, node: ir.Node) -> None:
    """Read a weight in another order of its axes, not a copy of it."""
    tensor, output = g.constant(node.inputs[0]), node.outputs[0]
    if not isinstance(tensor, Dequantized) or output.is_graph_output():
        return
    order = g.order_of(node, tensor.shape.rank())
    if order is None:
        return
    shape = ir.Shape([tensor.shape.numpy()[axis] for axis in order])

    def read() -> ir.TensorProtocol:
        return ir.tensor(np.transpose(tensor.numpy(), order), dtype=tensor.dtype)

    like = ir.Value(name=tensor.name)
    transposed = ir.LazyTensor(read, tensor.dtype, shape, name=tensor.name)
    g.forward(node, g.initializer(model, like, transposed, trains=True))


def _fits(node: ir.Node) -> bool:
    codes, scales = g.constant(node.inputs[0]), g.constant(node.inputs[1])
    given = node.inputs[2] if len(node.inputs) > 2 else None
    if codes is None or scales is None or (given is not None and not g.constant(given)):
        return False
    if node.attributes.get_int("output_dtype", 0) not in (0, scales.dtype):
        return False
    known = is_small(node.inputs[0]) or codes.dtype in _STORED
    block = node.attributes.get_int("block_size", 0)
    return known and (len(scales.shape) <= 1 or block > 0)


def _weight(model: ir.Model, node: ir.Node) -> ir.Value:
    codes, scales = (g.unwrap(g.constant(value)) for value in node.inputs[:2])
    zeros = g.constant(node.inputs[2]) if len(node.inputs) > 2 else None
    name = _name(model, node)
    axis = node.attributes.get_int("axis", 1)
    block = node.attributes.get_int("block_size", 0)
    tensor: ir.TensorProtocol = Dequantized(name, codes, scales, zeros, axis, block)
    alone = codes.size == 1
    if alone or not is_small(node.inputs[0]):
        tensor = _plain(tensor)
    return g.initializer(model, ir.Value(name=name), tensor, trains=not alone)


def _plain(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    """The dequantized values as a weight of their own."""

    def read() -> ir.TensorProtocol:
        return ir.tensor(np.asarray(tensor.numpy()), dtype=tensor.dtype)

    return computed(read(), read)


def _name(model: ir.Model, node: ir.Node) -> str:
    """The author's name of the weight, where the quantizer left it."""
    codes, output = g.unwrap(node.inputs[0]), node.outputs[0]
    name = _ADDED.sub("", codes.name or "")
    free = name and name != codes.name and name not in model.graph.initializers
    return name if free else (output.name or codes.name or "weight")
