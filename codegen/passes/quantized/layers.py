"""Fold the quantization of an input into the quantized layer that reads it."""

from __future__ import annotations

import json

import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.ops import Trait, having
from burnish.codegen.ops.quantized.quantize import ON_INPUT
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.quantized._values import (
    Scale,
    is_dequantized,
    scale_of_rounding,
    scale_of_tensor,
    source_of,
)
from burnish.codegen.weights.dequantized import Dequantized

_PRODUCTS = having(Trait.PRODUCT) | {"Conv"}


def round_inputs(model: ir.Model, account: Account) -> None:
    """Annotate layers with their inputs' quantization; remove it from the graph."""
    for node in g.all_nodes(model):
        if node.op_type not in _PRODUCTS or node.domain or len(node.inputs) < 2:
            continue
        scale = _scale_before(node.inputs[0])
        if scale is None or not is_dequantized(node.inputs[1]):
            continue
        if scale.scales.size != 1:
            continue
        quantization = {
            "scale": float(scale.scales[0]),
            "zero_point": int(scale.zeros[0]),
            "value": scale.value,
        }
        node.metadata_props[ON_INPUT] = json.dumps(quantization)
        account.did("layer that rounds its input", g.label(node))
    for node in g.all_nodes(model):
        if node.op_type == "FakeQuantize" and node.domain == "burnish":
            _drop(node)


def _scale_before(value: ir.Value | None) -> Scale | None:
    """The scale by which the source of a value's numbers was quantized."""
    source = None if value is None else source_of(value)
    maker, tensor = g.maker_of(source), g.constant(source)
    if isinstance(tensor, Dequantized):
        return scale_of_tensor(tensor)
    if maker is None or maker.op_type != "FakeQuantize":
        return None
    return scale_of_rounding(maker)


def _drop(node: ir.Node) -> None:
    """Let quantizing layers read the unquantized value, unless others read it."""
    output, source = node.outputs[0], node.inputs[0]
    rounding = [
        index == 0 and ON_INPUT in reader.metadata_props
        for reader, index in output.uses()
    ]
    if source is None or output.is_graph_output() or not rounding or not all(rounding):
        return
    ir.convenience.replace_all_uses_with(output, source)
    g.owner(node).remove(node, safe=True)
