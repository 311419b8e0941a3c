"""Store integers of 2 and 4 bits that only DequantizeLinear reads in 8 bits.

NumPy has no narrower ones, and neither has Safetensors; the numbers stay the same.
Views and selections between the table and DequantizeLinear are followed.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.ops import Trait, having
from burnish.codegen.passes import graph as g
from burnish.codegen.weights import origin

_WIDE = {
    ir.DataType[name]: wide
    for name, wide in (
        ("INT2", ir.DataType.INT8),
        ("INT4", ir.DataType.INT8),
        ("UINT2", ir.DataType.UINT8),
        ("UINT4", ir.DataType.UINT8),
    )
    if name in ir.DataType.__members__  # an older ONNX has no 2 bits
}
_MOVES = having(Trait.VIEW | Trait.SELECTION)
"""Operators whose result is elements of their first input, as they are."""


def widen_integers(model: ir.Model, account: Account) -> bool:
    """Give narrow tables, and what selects from them, the dtype of 8 bits."""
    wide = _replaceable(model)
    for value in wide:
        old = value.const_value
        if old is not None:
            value.const_value = _widened(old)
            account.did("integers of few bits, stored in 8", value.name or "")
        assert value.dtype is not None
        value.dtype = _WIDE[value.dtype]
    return bool(wide)


def _replaceable(model: ir.Model) -> list[ir.Value]:
    """Narrow values that come from constants, and end in DequantizeLinear alone."""
    found: dict[ir.Value, None] = {}
    for graph in model.graphs():
        found.update((v, None) for v in graph.initializers.values() if _is_table(v))
    for node in g.all_nodes(model):  # in topological order
        if _moves(node) and node.inputs[0] in found:
            found[node.outputs[0]] = None
    while kept := [value for value in found if not _ends(value, found)]:
        for value in kept:
            del found[value]
    return list(found)


def _is_table(value: ir.Value) -> bool:
    tensor = g.constant(value)
    return tensor is not None and tensor.dtype in _WIDE


def _moves(node: ir.Node) -> bool:
    return not node.domain and node.op_type in _MOVES and len(node.outputs) == 1


def _ends(value: ir.Value, found: dict[ir.Value, None]) -> bool:
    """Whether every reader of a value takes 8 bits too, and no caller sees it."""
    producer = value.producer()
    if value.is_graph_output() or not value.uses():
        return False
    if producer is not None and producer.inputs[0] not in found:
        return False
    for node, index in value.uses():
        if node.op_type == "DequantizeLinear" and index != 1:
            table, zeros = node.inputs[0], (*node.inputs, None, None)[2]
            if table not in found or (zeros is not None and zeros not in found):
                return False
        elif not (_moves(node) and index == 0 and node.outputs[0] in found):
            return False
    return True


def _widened(old: ir.TensorProtocol) -> ir.TensorProtocol:
    held = old.held if isinstance(old, origin.Origin) else old
    narrow, wide = old.dtype.numpy(), _WIDE[old.dtype]

    def read() -> ir.TensorProtocol:
        return ir.tensor(held.numpy().astype(wide.numpy()), dtype=wide)

    new = ir.LazyTensor(read, wide, ir.Shape(held.shape.numpy()), name=old.name)
    kept = g.unwrap(
        origin.replaced(old, new, lambda array: np.asarray(array).astype(narrow))
    )
    return kept
