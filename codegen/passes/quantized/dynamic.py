"""Dynamically quantized products: ranges are computed from the inputs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.ops.quantized.quantize import ON_INPUT
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.quantized._values import (
    dequantized,
    only_reader,
    put,
    replace,
)
from burnish.codegen.passes.quantized.whole_bias import WholeBias, whole_bias

_PRODUCTS = {"ConvInteger": "Conv", "MatMulInteger": "MatMul"}


def dynamic_layers(
    model: ir.Model, account: Account, *, dequantize: bool = False
) -> bool:
    """A product with a weight of few bits, which rounds its input, for each form.

    A recurrent layer that onnxruntime's operator became says so from the start.
    """
    changed = False
    for node in g.all_nodes(model):
        if node.metadata_props.get(ON_INPUT) and dequantize:
            del node.metadata_props[ON_INPUT]
            changed = True
        if node.op_type not in _PRODUCTS or node.domain:
            continue
        found = _scaled(node)
        if found is None:
            continue
        result, x = found.result, g.unwrap(node.inputs[0])
        maker = x.producer()
        if found.step is not None:
            zero = (*node.inputs, None)[2]
            x = dequantized(result, [x, found.step, zero])
        elif maker is not None and maker.inputs[0] is not None:
            x = maker.inputs[0]
        weight = _weight(model, node, result, found.scales)
        operands, bias = [x, weight], found.bias
        if bias is not None and found.step is not None:
            operands.append(bias.rounded(model, g.scalar(found.step), found.scales))
        elif bias is not None:
            operands.append(bias.value)
        plain = put(result, _PRODUCTS[node.op_type], operands)
        plain.name = node.name
        plain.metadata_props.update(node.metadata_props)
        for attribute in node.attributes.values():
            plain.attributes.add(attribute)
        if found.step is None and not dequantize:
            how = {} if bias is None else {"bias_scales": found.scales.tolist()}
            plain.metadata_props[ON_INPUT] = json.dumps(how)
        replace(result, plain.outputs[0])
        for dead in (*reversed(found.path), node):
            g.owner(dead).remove(dead, safe=True)
        account.did("layer that rounds its input", g.label(node))
        changed = True
    return changed


@dataclass(frozen=True)
class _Scaled:
    """A product of whole numbers that is brought to its scale.

    result: the node that does so. path: the nodes between. scales: of the weight.
    step: of what is multiplied; None where DynamicQuantizeLinear gives it. bias: what
    is added before.
    """

    result: ir.Node
    path: tuple[ir.Node, ...]
    scales: np.ndarray
    step: ir.Value | None
    bias: WholeBias | None


def _scaled(node: ir.Node) -> _Scaled | None:
    x, w = node.inputs[:2]
    given, of_weight = (*node.inputs[2:], None, None)[:2]
    if (
        x is None
        or g.constant(w) is None
        or (of_weight and g.constant(of_weight) is None)
    ):
        return None
    maker = x.producer()
    dynamic = maker is not None and maker.op_type == "DynamicQuantizeLinear"
    if dynamic and maker is not None:
        if given is not maker.outputs[2] or x is not maker.outputs[0]:
            return None
    elif given is not None and g.constant(given) is None:
        return None
    path = _to_floats(node)
    result = only_reader(path[-1]) if path else None
    if result is None or result.op_type != "Mul":
        return None
    others = [v for v in result.inputs if v is not path[-1].outputs[0]]
    both = others[0].producer() if others and others[0] is not None else None
    if both is None or both.op_type != "Mul":
        return None
    step = maker.outputs[1] if dynamic and maker is not None else both.inputs[0]
    if step is None or step not in both.inputs:
        return None
    if not dynamic and g.scalar(step) is None:
        return None
    (scales,) = [g.constant(v) for v in both.inputs if v is not step] or [None]
    if scales is None or not _is_by_output(node, scales.numpy()):
        return None
    bias = None
    if len(path) == 2 and (bias := whole_bias(node, path[0], step, scales)) is None:
        return None
    return _Scaled(result, path, scales.numpy(), None if dynamic else step, bias)


def _to_floats(node: ir.Node) -> tuple[ir.Node, ...]:
    """The only readers of a product up to its Cast; an Add may be before."""
    first = only_reader(node)
    path = [first, only_reader(first)] if first and first.op_type == "Add" else [first]
    cast = path[-1]
    if cast is None or cast.op_type != "Cast":
        return ()
    if cast.attributes.get_int("to", 0) != ir.DataType.FLOAT:
        return ()
    return tuple(each for each in path if each is not None)


def _is_by_output(node: ir.Node, scales: np.ndarray) -> bool:
    """Whether there is one scale, or one for each output."""
    weight = g.unwrap(g.constant(node.inputs[1]))
    shape = weight.shape.numpy()
    if scales.size == 1:
        return len(shape) >= 2
    if node.op_type == "MatMulInteger":
        return len(shape) == 2 and scales.shape[-1] == scales.size == shape[-1]
    wanted = (shape[0], *(1,) * (len(shape) - 2))
    return scales.size == shape[0] and scales.shape[-len(wanted) :] == wanted


def _weight(
    model: ir.Model, node: ir.Node, before: ir.Node, scales: np.ndarray
) -> ir.Value:
    weight, zero = g.unwrap(node.inputs[1]), (*node.inputs, None)[3]
    flat: np.ndarray[Any, Any] = np.ascontiguousarray(scales).reshape(-1)
    zeros = g.constant(zero)
    if zeros is not None and zeros.size > 1:
        flat = np.broadcast_to(flat, (zeros.size,)).copy()
    elif zeros is not None and flat.size > 1:
        wide = np.broadcast_to(zeros.numpy().reshape(-1), flat.shape).copy()
        zero = g.new_constant(model, f"{weight.name}_zero_points", wide)
    if flat.size == 1:
        flat = flat.reshape(())
    scale = g.new_constant(model, f"{weight.name}_scales", flat)
    axis = 0 if node.op_type == "ConvInteger" else len(weight.shape or ()) - 1
    several = flat.size > 1
    return dequantized(before, [weight, scale, zero], axis if several else None)
