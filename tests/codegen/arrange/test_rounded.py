"""Roundings of a quantized model belong to the modules that its float twin has."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx

from tests.harness.source import check_source, floats, graph, node
from tests.harness.strip import stripped


class Quantized:
    """Nodes with a pair of QuantizeLinear and DequantizeLinear behind each."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, Any] = {"zero": np.uint8(128)}

    def put(self, kind: str, read: str, at: str) -> str:
        """The rounded result of a node in the module `at`."""
        name = f"{at}/{kind}"
        made = f"{name}_output_{len(self.nodes)}"
        scale = f"scale{len(self.nodes)}"
        self.weights[scale] = np.float32(0.03 + 0.001 * len(self.nodes))
        ends = f"{scale} zero"
        self.nodes += [
            node(kind, read, made, name),
            node("QuantizeLinear", f"{made} {ends}", f"{made}_q", f"{name}_q"),
            node("DequantizeLinear", f"{made}_q {ends}", f"{made}_d", f"{name}_d"),
        ]
        return f"{made}_d"

    def weight(self, name: str, *shape: int) -> str:
        self.weights[name] = floats(*shape, seed=len(self.weights))
        return name

    def linear(self, x: str, path: str, inside: int, outside: int) -> str:
        """A product with a sum behind it, both rounded, as quantizers leave them."""
        at = "/" + path.replace(".", "/", 1) if "." in path else f"/{path}"
        held = self.weight(f"onnx::MatMul_{len(self.weights)}", inside, outside)
        x = self.put("MatMul", f"{x} {held}", at)
        return self.put("Add", f"{self.weight(f'{path}.bias', outside)} {x}", at)

    def model(self, result: str, *shape: int) -> onnx.ModelProto:
        self.nodes.append(node("Identity", result, "y"))
        return graph(self.nodes, self.weights, x=shape)


def mlp() -> onnx.ModelProto:
    """Two blocks of two layers; the activation is a module, and is rounded inside."""
    made = Quantized()
    x = "x"
    for block in ("first", "second"):
        x = made.linear(x, f"{block}.up", 4, 8)
        at = f"/{block}/act"
        inner = made.put("Erf", x, at)
        x = made.put("Mul", f"{inner} {x}", at)
        x = made.linear(x, f"{block}.down", 8, 4)
    return made.model(x, 3, 4)


def test_leaves_with_roundings_have_one_class_and_functions_have_none() -> None:
    text = check_source(
        mlp(),
        """
        class QuantLinear(nn.Module):
            \"\"\"(3, in_features) -> (3, out_features)\"\"\"

            def __init__(self, in_features, out_features):
                self.linear = nn.Linear(in_features, out_features, bias=False)
                self.quant = nn.FakeQuantize()
                self.bias = nn.Param(nn.init.normal(0.02), (out_features,))

            def forward(self, x):
                return self.bias + self.quant(self.linear(x))
        """,
        rtol=1e-4,
    )
    found = re.findall(r"^class (\w+)", text, re.MULTILINE)
    assert len(found) == 3, text


def masked() -> onnx.ModelProto:
    """Layers that each round a mask of their own, made of one input."""
    made, x = Quantized(), "x"
    made.weights |= {"0": np.float32(0), "low": np.float32(-1)}
    for layer in range(3):
        made.nodes.append(node("Where", "m 0 low", f"where{layer}"))
        mask = made.put("Identity", f"where{layer}", f"/{layer}")
        for part in ("a", "b"):
            held = made.weight(f"{part}{layer}", 4, 4)
            x = made.put("MatMul", f"{x} {held}", "")
            x = made.put("Add", f"{x} {mask}", "") if part == "b" else x
            x = made.put("Tanh", x, "")
    made.nodes.append(node("Identity", x, "y"))
    bools = onnx.TensorProto.BOOL
    return graph(made.nodes, made.weights, x=(3, 4), m=(bools, (3, 4)))


def test_a_mask_that_each_layer_rounds_is_rounded_inside_of_it() -> None:
    text = check_source(
        stripped(masked()),
        """
        self.blocks = [MLP() for _ in range(3)]
        """,
        rtol=1e-4,
    )
    assert "fakequantize" not in text


def test_a_known_size_is_rounded_before_the_model_runs() -> None:
    made = Quantized()
    made.weights["axis"] = np.array(1)
    made.nodes += [
        node("Shape", "x", "shape"),
        node("Gather", "shape axis", "size"),
        node("Cast", "size", "number", to=onnx.TensorProto.FLOAT),
    ]
    rounded = made.put("Sqrt", made.put("Identity", "number", ""), "")
    made.nodes.append(node("Div", f"x {rounded}", "y"))
    text = check_source(graph(made.nodes, made.weights, x=("batch", 4)))
    assert "quant" not in text
