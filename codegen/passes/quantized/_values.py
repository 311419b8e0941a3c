"""Helpers of quantization passes: scales and zero points, insertion of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx_ir as ir

from burnish.codegen.ops import Trait, having
from burnish.codegen.passes import graph as g
from burnish.codegen.weights.dequantized import BITS, Dequantized
from burnish.ops.quantized.small import small

VALUES = {
    ir.DataType[name]: value
    for value, names in (
        ("q8f", ("INT8", "UINT8")),
        ("q16f", ("INT16", "UINT16")),
        ("q4f", ("INT4", "UINT4")),
        ("e4m3", ("FLOAT8E4M3FN",)),
        ("e5m2", ("FLOAT8E5M2",)),
    )
    for name in names
}
"""The numbers that a type's codes stand for, in words of a QuantScheme."""


class Scale(NamedTuple):
    """Scales and zero points, these of signed numbers, and the numbers between."""

    scales: np.ndarray[Any, Any]
    zeros: np.ndarray[Any, Any]
    value: str = "q8f"

    @property
    def lowest(self) -> float:
        """The least number of a code; where codes are signed."""
        return small(self.value).low


_MOVES = having(Trait.VIEW | Trait.SELECTION) | {"MaxPool"}


def scale_of(node: ir.Node) -> Scale | None:
    """The scales and zero points of a node, where the file has them."""
    scales = g.constant(node.inputs[1])
    given = node.inputs[2] if len(node.inputs) > 2 else None
    zeros = None if given is None else g.constant(given)
    if scales is None or (given is not None and zeros is None):
        return None
    small = node.outputs[0] if node.op_type == "QuantizeLinear" else node.inputs[0]
    dtype = zeros.dtype if zeros is not None else small.dtype if small else None
    if zeros is None and node.op_type == "QuantizeLinear":
        dtype = _output_dtype(node)
    if scales.dtype != ir.DataType.FLOAT or g.attribute(node, "block_size", 0):
        return None
    if not g.attribute(node, "saturate", 1):
        return None
    return _shifted(scales, zeros, dtype)


def scale_of_tensor(tensor: Dequantized) -> Scale | None:
    """Those of a weight."""
    return _shifted(tensor.scales, tensor.zeros, tensor.codes.dtype)


def scale_of_rounding(node: ir.Node) -> Scale:
    """Those of a FakeQuantize."""
    scale, zero = (g.unwrap(g.constant(v)).numpy() for v in node.inputs[1:3])
    value = node.attributes.get_string("value", "q8f")
    return Scale(scale.reshape(-1), zero.reshape(-1), value)


def _shifted(
    scales: ir.TensorProtocol,
    zeros: ir.TensorProtocol | None,
    dtype: ir.DataType | None,
) -> Scale | None:
    if dtype is None or dtype not in VALUES:
        return None
    held, value = np.ascontiguousarray(scales.numpy()).reshape(-1), VALUES[dtype]
    kind = small(value)
    shift = 2 ** (kind.bits - 1) if dtype.name.startswith("U") else 0
    whole = np.zeros(held.shape, np.float32)
    if zeros is not None:
        whole = zeros.numpy().reshape(-1).astype(np.float32)
    if whole.any() and not kind.whole:
        return None
    return Scale(held, (whole - shift).astype(kind.dtype), value)


def _output_dtype(node: ir.Node) -> ir.DataType:
    """The type of a QuantizeLinear without a zero point."""
    dtype = node.attributes.get_int("output_dtype", 0)
    return ir.DataType(dtype) if dtype else ir.DataType.UINT8


def same(one: Scale | None, other: Scale | None) -> bool:
    """Whether two say the same."""
    if one is None or other is None:
        return False
    return one.value == other.value and all(map(np.array_equal, one[:2], other[:2]))


def moves(node: ir.Node) -> bool:
    """Whether results are elements of the first input, as they are."""
    if node.op_type == "Resize":
        places = g.attribute(node, "coordinate_transformation_mode", "")
        nearest = g.attribute(node, "mode", "nearest") == "nearest"
        return nearest and places != "tf_crop_and_resize"  # which has a value outside
    return node.op_type in _MOVES


def source_of(value: ir.Value) -> ir.Value:
    """The value whose numbers, or 0, a value has: through selections, pads, ReLU."""
    maker = value.producer()
    while maker is not None and not maker.domain and maker.inputs[0] is not None:
        if not (moves(maker) or maker.op_type == "Relu" or _pads_zero(maker)):
            break
        value = maker.inputs[0]
        maker = value.producer()
    return value


def _pads_zero(node: ir.Node) -> bool:
    """Whether a node pads with 0, which every scale has exactly."""
    given = node.inputs[2] if len(node.inputs) > 2 else None
    held = None if given is None else g.constant(given)
    zeros = given is None or (held is not None and not held.numpy().any())
    return node.op_type == "Pad" and "value" not in node.attributes and zeros


def is_small(value: ir.Value | None) -> bool:
    """Whether it is a constant of numbers of a few bits."""
    tensor = g.constant(value)
    return tensor is not None and tensor.dtype in BITS


def is_dequantized(value: ir.Value | None) -> bool:
    """Whether the value is a dequantized weight."""
    return isinstance(g.constant(value), Dequantized)


def only_reader(node: ir.Node) -> ir.Node | None:
    """The reader of a node's first result; None where there are others, or none."""
    output = node.outputs[0]
    readers = [reader for reader, _ in output.uses()]
    return readers[0] if len(readers) == 1 and not output.is_graph_output() else None


def put(
    old: ir.Node, op_type: str, inputs: Sequence[ir.Value | None], domain: str = ""
) -> ir.Node:
    """Insert a node before another one, with the other's name and scope."""
    node = ir.Node(domain, op_type, list(inputs))
    g.before(old, node)
    return node


def dequantized(
    old: ir.Node, parts: Sequence[ir.Value | None], axis: int | None = None
) -> ir.Value:
    """Insert a DequantizeLinear of codes, scale and zero point before a node."""
    made, codes = put(old, "DequantizeLinear", parts), parts[0]
    if axis is not None:
        made.attributes.add(ir.AttrInt64("axis", axis))
    made.outputs[0].dtype = ir.DataType.FLOAT
    made.outputs[0].shape = None if codes is None else codes.shape
    return made.outputs[0]


def replace(node: ir.Node, made: ir.Value) -> None:
    """Let a value take the place of a node's result: its readers, type and name."""
    old = node.outputs[0]
    made.type, made.shape, name = old.type, old.shape, old.name
    ir.convenience.replace_all_uses_with(old, made, replace_graph_outputs=True)
    g.owner(node).remove(node, safe=True)
    made.name = name
