"""A model for each search of onnxruntime's, whose decoder is a table of next words."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WORDS, LENGTH = 9, 8
IDS = np.asarray([[3, 4, 5], [8, 2, 6]], np.int32)


def _decoder() -> onnx.GraphProto:
    """GPT-2's interface: the past is only counted."""
    node = helper.make_node
    nodes = [
        node("Gather", ["table", "input_ids"], ["logits"]),
        node("Cast", ["position_ids"], ["new"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["new", "axes"], ["key"]),
        node("Concat", ["key", "key"], ["both"], axis=0),
        node("Concat", ["past_0", "both"], ["present_0"], axis=3),
    ]
    ids = ["batch", "time"]
    inputs = [("input_ids", 6, ids), ("position_ids", 6, ids)]
    inputs += [("attention_mask", 6, ["batch", "all"])]
    inputs += [("past_0", 1, [2, "batch", 1, "past", 1])]
    outputs = [("logits", 1, [*ids, WORDS])]
    outputs += [("present_0", 1, [2, "batch", 1, "all", 1])]
    infos = [
        [helper.make_tensor_value_info(*each) for each in side]
        for side in (inputs, outputs)
    ]
    table = np.random.default_rng(0).normal(size=(WORDS, WORDS)).astype(np.float32)
    tensors = {"table": table, "axes": np.asarray([0, 2, 4])}
    held = [numpy_helper.from_array(array, name) for name, array in tensors.items()]
    return helper.make_graph(nodes, "decoder", *infos, held)


def _search(op: str, **attributes: float) -> onnx.ModelProto:
    """ids, and numbers that are known."""
    given = {"max_length": np.int32([LENGTH]), "min_length": np.int32([1])}
    if op == "BeamSearch":
        given |= {"num_beams": np.int32([3]), "num_return_sequences": np.int32([2])}
        given["length_penalty"] = np.float32([0.5])
    node = helper.make_node(
        *(op, ["input_ids", *given], ["sequences"], op),
        domain="com.microsoft",
        decoder=_decoder(),
        eos_token_id=0,
        pad_token_id=8,
        **attributes,
    )
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT32, ["batch", "T"])
    sizes = [f"sequences_{i}" for i in range(3 if op == "BeamSearch" else 2)]
    made = helper.make_tensor_value_info("sequences", TensorProto.INT32, sizes)
    held = [numpy_helper.from_array(array, name) for name, array in given.items()]
    graph = helper.make_graph([node], "g", [ids], [made], held)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


SEARCHES = {
    "burnish.GreedySearch": (_search("GreedySearch"), [IDS]),
    "burnish.BeamSearch": (_search("BeamSearch"), [IDS]),
    "burnish.Sampling": (_search("Sampling", top_p=0.5), [IDS]),
}
