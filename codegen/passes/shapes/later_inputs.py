"""Convert attributes of older opsets to the inputs that later opsets have instead.

Clip had its bounds as attributes, Slice its ends, Squeeze its axes: patterns and passes
ask for inputs alone. They mean the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.passes import graph as g

_INPUTS: dict[str, tuple[Any, ...]] = {
    "Clip": (11, "min", "max"),
    "Pad": (11, "pads", "value"),
    "Slice": (10, "starts", "ends", "axes"),
    "Split": (13, "split"),
    "Squeeze": (13, "axes"),
    "Unsqueeze": (13, "axes"),
}
"""The first opset that has them as inputs, and their order behind the first one."""


def later_inputs(model: ir.Model, account: Account) -> bool:
    """Write bounds, ends and axes as inputs."""
    rewrites = {"attributes that later opsets have as inputs": _moved}
    return g.rewrite_nodes(model, account, rewrites, *_INPUTS)


def _moved(model: ir.Model, node: ir.Node) -> bool:
    """Whether the attributes that the node has are inputs now."""
    since, *names = _INPUTS[node.op_type]
    data = node.inputs[0]
    held = {n: node.attributes[n] for n in names if n in node.attributes}
    if g.version(model, node) >= since or data is None or data.dtype is None:
        return False
    if not held or len(node.inputs) > 1:
        return False
    dtype = data.dtype.numpy()
    for place, name in enumerate(names, 1):
        if name not in held:
            continue
        attribute = held[name]
        whole = attribute.type == ir.AttributeType.INTS
        array = np.array(attribute.value, np.int64 if whole else dtype)
        made = g.new_constant(model, f"{node.outputs[0].name}_{name}", array)
        node.resize_inputs(place + 1)
        node.replace_input_with(place, made)
        node.attributes.pop(name)
    node.version = since
    return True
