"""Recognize biases that a quantizer rounds to whole units of an integer product.

onnxruntime's first quantizer (2020) writes a ConvInteger's bias so: the unit, the
input's scale times the weight's, is known only once the input is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from burnish.codegen.passes import graph as g
from burnish.codegen.weights import constants


@dataclass(frozen=True)
class WholeBias:
    """A parameter in floats, (outputs,)."""

    value: ir.Value

    def rounded(
        self, model: ir.Model, step: float | None, scales: np.ndarray
    ) -> ir.Value:
        """The multiples of a known unit."""
        tensor = g.unwrap(g.constant(self.value))
        unit = np.float32(step) * scales.reshape(-1)
        whole = np.floor(tensor.numpy() / unit)
        like = ir.Value(name=self.value.name)
        return g.initializer(model, like, ir.tensor(whole * unit), trains=True)


def whole_bias(
    product: ir.Node, add: ir.Node, step: ir.Value, scales: ir.TensorProtocol
) -> WholeBias | None:
    """The bias of Add(product, Reshape(Cast(Floor(bias / (step * scales)))))."""
    others = [v for v in add.inputs if v is not product.outputs[0]]
    if product.op_type != "ConvInteger" or len(others) != 1:
        return None
    reshape = g.maker_of(others[0], "Reshape")
    shape = None if reshape is None else g.constant(reshape.inputs[1])
    node = None if reshape is None else g.maker_of(reshape.inputs[0], "Cast")
    if node is None or shape is None:
        return None
    if node.attributes.get_int("to", 0) != ir.DataType.INT32:
        return None
    floor = g.maker_of(node.inputs[0], "Floor")
    divided = None if floor is None else g.maker_of(floor.inputs[0], "Div")
    unit = None if divided is None else g.maker_of(divided.inputs[1], "Mul")
    if divided is None or unit is None or divided.inputs[0] is None:
        return None
    bias = g.constant(divided.inputs[0])
    by = [g.constant(v) for v in unit.inputs if v is not step]
    if bias is None or step not in unit.inputs or len(by) != 1 or by[0] is None:
        return None
    same = np.array_equal(by[0].numpy(), scales.numpy())
    if not same or not constants.trains(divided.inputs[0]):
        return None
    fits = _is_by_channel(product, bias, shape.numpy())
    return WholeBias(divided.inputs[0]) if fits else None


def _is_by_channel(
    product: ir.Node, bias: ir.TensorProtocol, shape: np.ndarray
) -> bool:
    """Whether a bias in this shape has a number for each channel of the product."""
    weight = g.unwrap(g.constant(product.inputs[1]))
    outs, *others = weight.shape.numpy()
    if tuple(bias.shape.numpy()) != (outs,) or 0 in shape:
        return False
    made = np.empty(outs).reshape(shape).shape
    behind = (1,) * (len(others) - 1)
    return made in ((outs, *behind), (1, outs, *behind))
