"""Evaluate one operator on arrays with ONNX's reference implementation.

A rounding, which ONNX has as a pair of operators, is evaluated by the runtime.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from burnish import ops
from burnish.codegen.evaluator import evaluated
from burnish.ops.quantized.small import small


def evaluate(
    node: ir.Node, version: int, arrays: list[np.ndarray | None]
) -> list[np.ndarray]:
    """The node's outputs for these inputs (None: an input that is left out)."""
    if is_rounding(node):
        x, scale, zero = (np.asarray(array) for array in arrays)
        value = node.attributes.get_string("value", "q8f")
        params = scale.reshape(-1), zero.reshape(-1) if small(value).whole else None
        blocks = (max(x.size, 1),)
        return [ops.fake_quantize(x, *params, value=value, blocks=blocks)]
    names = [f"i{i}" if a is not None else "" for i, a in enumerate(arrays)]
    outputs = [f"o{i}" for i in range(len(node.outputs))]
    message: Any = onnx.helper.make_node(node.op_type, names, outputs)
    for held in node.attributes.values():
        message.attribute.append(ir.to_proto(held))
    graph = onnx.helper.make_graph(
        [message],
        "one",
        [
            onnx.helper.make_tensor_value_info(
                name, int(ir.DataType.from_numpy(array.dtype)), array.shape
            )
            for name, array in zip(names, arrays, strict=True)
            if array is not None
        ],
        [onnx.helper.make_empty_tensor_value_info(name) for name in outputs],
    )
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", version)]
    )
    feeds = {n: a for n, a in zip(names, arrays, strict=True) if a is not None}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        results = evaluated(model, feeds)
    return [np.asarray(r) if isinstance(r, np.generic) else r for r in results]


def is_rounding(node: ir.Node) -> bool:
    """Whether a node rounds all numbers of its input by one scale."""
    return (node.domain, node.op_type) == (
        "burnish",
        "FakeQuantize",
    ) and "axis" not in node.attributes
