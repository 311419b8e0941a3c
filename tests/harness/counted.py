"""A model file whose layers a framework counted: "conv2d_0.w_0", "linear_3.b_0"."""

from __future__ import annotations

from collections import Counter

import onnx

from tests.harness.strip import stripped

KINDS = {
    "Conv": "conv2d",
    "MatMul": "linear",
    "Gemm": "linear",
    "LayerNormalization": "layer_norm",
    "BatchNormalization": "batch_norm2d",
    "Gather": "embedding",
}


def counted(
    model: onnx.ModelProto, weight: str = "w_0", bias: str = "b_0"
) -> onnx.ModelProto:
    """A copy with numbered values, and PaddlePaddle's kind of names for weights."""
    bare = stripped(model)
    known = {tensor.name: tensor for tensor in bare.graph.initializer}
    counts: Counter[str] = Counter()
    names: dict[str, str] = {}
    made: dict[str, str] = {}
    for node in bare.graph.node:
        weights = [name for name in node.input if name in known]
        kind = KINDS.get(node.op_type, "")
        if kind and weights:
            layer = f"{kind}_{counts[kind]}"
            counts[kind] += 1
            made[node.output[0]] = layer
            for name, word in zip(weights, (weight, bias, "w_1", "w_2"), strict=False):
                names[name] = f"{layer}.{word}"
        elif node.op_type == "Add" and weights and node.input[0] in made:
            names[weights[0]] = f"{made[node.input[0]]}.{bias}"
    for name, tensor in known.items():
        tensor.name = names.get(name, name)
    for node in bare.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
    return bare
