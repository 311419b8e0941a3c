"""The Burnish column of the README's comparison: right at two sizes, and it trains."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from burnish import nn
from burnish.codegen import ModelGen

RANDOM = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    return (0.3 * RANDOM.standard_normal(shape)).astype(np.float32)


def typed(name: str, *shape: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def weights(**arrays: Any) -> list[TensorProto]:
    return [numpy_helper.from_array(np.asarray(a), n) for n, a in arrays.items()]


def model(
    nodes: list[NodeProto], x: tuple[Any, ...], y: tuple[Any, ...], **arrays: Any
) -> ModelProto:
    graph = helper.make_graph(
        nodes, "g", [typed("x", *x)], [typed("y", *y)], weights(**arrays)
    )
    opset = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=opset, ir_version=9)


def convolution() -> ModelProto:
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["a"], kernel_shape=[3, 3]),
        node("Relu", ["a"], ["b"]),
        node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["c"], ["d"]),
        node("Gemm", ["d", "w2", "b2"], ["y"], transB=1),
    ]
    arrays = {
        "w1": numbers(4, 1, 3, 3),
        "b1": numbers(4),
        "w2": numbers(3, 36),
        "b2": numbers(3),
    }
    return model(nodes, ("n", 1, 8, 8), ("n", 3), **arrays)


def computed_shape() -> ModelProto:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "first"], ["n"]),
        helper.make_node("Concat", ["n", "rest"], ["t"], axis=0),
        helper.make_node("Reshape", ["x", "t"], ["r"]),
        helper.make_node("MatMul", ["r", "w"], ["y"]),
    ]
    arrays = {"first": [0], "rest": [-1], "w": numbers(6, 4)}
    return model(nodes, ("n", 2, 3), ("n", 4), **arrays)


def choice() -> ModelProto:
    def branch(weight: str) -> GraphProto:
        product = helper.make_node("MatMul", ["x", weight], ["p"])
        held = weights(**{weight: numbers(3, 3)})
        return helper.make_graph([product], weight, [], [typed("p", "n", 3)], held)

    nodes = [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Greater", ["s", "zero"], ["c"]),
        helper.make_node(
            "If", ["c"], ["y"], then_branch=branch("w1"), else_branch=branch("w2")
        ),
    ]
    return model(nodes, ("n", 3), ("n", 3), zero=np.float32(0))


def loop() -> ModelProto:
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("MatMul", ["v", "w"], ["p"]),
            helper.make_node("Tanh", ["p"], ["u"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            typed("v", "n", 3),
        ],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, []), typed("u", "n", 3)],
        weights(w=numbers(3, 3)),
    )
    node = helper.make_node("Loop", ["count", "yes", "x"], ["y"], body=body)
    return model([node], ("n", 3), ("n", 3), count=np.int64(4), yes=np.bool_(True))


def recurrent() -> ModelProto:
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        helper.make_node("LSTM", ["t", "w", "r", "b"], ["o"], hidden_size=4),
        helper.make_node("Squeeze", ["o", "axes"], ["y"]),
    ]
    arrays = {"w": numbers(1, 16, 3), "r": numbers(1, 16, 4), "b": numbers(1, 32)}
    return model(nodes, ("n", 5, 3), (5, "n", 4), axes=[1], **arrays)


GRAPHS = {
    "convolution": (convolution, (1, 8, 8), 4),
    "computed shape": (computed_shape, (2, 3), 1),
    "If": (choice, (3,), 1),
    "Loop": (loop, (3,), 1),
    "LSTM": (recurrent, (5, 3), 4),
}


def imported(proto: ModelProto, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    onnx.save(proto, folder / "graph.onnx")
    ModelGen(folder).input(folder / "graph.onnx").run()
    spec = importlib.util.spec_from_file_location("graph", folder / "graph.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "graph", module)
    spec.loader.exec_module(module)
    return module.Model


@pytest.mark.parametrize(("make", "item", "trained"), GRAPHS.values(), ids=GRAPHS)
def test_right_at_two_sizes_and_trains(
    make: Any,
    item: tuple[int, ...],
    trained: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proto = make()
    net: nn.Module = imported(proto, tmp_path, monkeypatch).from_file()
    reference = ReferenceEvaluator(proto)
    for batch in (2, 5):
        x = numbers(batch, *item)
        (expected,) = reference.run(None, {"x": x})
        np.testing.assert_allclose(net(x).numpy(), expected, rtol=1e-4, atol=1e-6)
    tuned = net.train()
    y = tuned(x)
    gradients = (y * y).sum().backward()
    found = [gradients.get(parameter) for parameter in tuned.parameters()]
    moved = [g for g in found if g is not None and np.abs(g.numpy()).max() > 0]
    assert len(moved) == trained
