"""Fold quantization into the layers that it belongs to, before all other passes.

In: a Graph with QuantizeLinear and DequantizeLinear. Out: the graph of the float model:
weights that read as their codes' values, `FakeQuantize` where activations are rounded.
Invariant: the numbers stay those of the quantized graph.
"""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import common

from burnish.codegen.account import Account
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.quantized.dynamic import dynamic_layers
from burnish.codegen.passes.quantized.integer import integer_operators
from burnish.codegen.passes.quantized.layers import round_inputs
from burnish.codegen.passes.quantized.pairs import fake_quantize_pairs, move_floats
from burnish.codegen.passes.quantized.places import sort_by_need
from burnish.codegen.passes.quantized.weights import dequantize_weights
from burnish.codegen.scopes import is_placed
from burnish.codegen.weights.lost_scopes import settle

__all__ = ["quantized_layers"]


def quantized_layers(
    model: ir.Model, account: Account, *, dequantize: bool = False
) -> bool:
    """True where the model has quantized layers.

    dequantize: nothing is rounded any more, and weights are plain numbers.
    """
    integer_operators(model, account)
    changed = is_dynamic = dynamic_layers(model, account, dequantize=dequantize)
    move_floats(model)
    changed |= dequantize_weights(model, account)
    if is_dynamic:  # products whose nodes the quantizer made anew
        settle(model, [[node] for node in g.all_nodes(model) if not is_placed(node)])
        sort_by_need(model.graph)
    changed |= fake_quantize_pairs(model, account, dequantize=dequantize)
    if not dequantize:
        round_inputs(model, account)
    if changed:
        common.NameFixPass()(model)
    return changed
