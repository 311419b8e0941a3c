"""What modules compute from equal weights, and an exporter once, is theirs again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from burnish.codegen.pipeline import generate
from tests.harness.source import check_source, floats, graph, node


def scans(first: str, second: str, weight: str) -> onnx.ModelProto:
    """tanh(x * -weight) twice, of two modules that share the negated weight."""
    made = [
        node("Neg", weight, "n", f"{first}/Neg"),
        node("Mul", "x n", "a", f"{first}/Mul"),
        node("Tanh", "a", "b", f"{first}/Tanh"),
        node("Mul", "b n", "c", f"{second}/Mul"),
        node("Tanh", "c", "y", f"{second}/Tanh"),
    ]
    return graph(made, {weight: floats(4)}, x=("batch", 4))


@pytest.mark.parametrize(
    ("first", "second", "weight", "parameters"),
    [
        ("/layers/layers.0", "/layers/layers.1", "layers.0.a_log", 8),
        ("/encoder", "/decoder", "encoder.a_log", 4),
    ],
    ids=["of a list", "of no list"],
)
def test_each_module_of_a_list_has_its_weight(
    first: str, second: str, weight: str, parameters: int, tmp_path: Path
) -> None:
    model = scans(first, second, weight)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    assert generate(path).parameters == parameters
    source = check_source(model)
    assert ("for layer in self.layers" in source) == (parameters == 8)


def test_what_the_model_computes_for_its_modules_stays_outside() -> None:
    made = [
        node("Sigmoid", "decay", "n", "/Sigmoid"),
        node("Mul", "x n", "a", "/layers.0/Mul"),
        node("Tanh", "a", "b", "/layers.0/Tanh"),
        node("Mul", "b n", "c", "/layers.1/Mul"),
        node("Tanh", "c", "y", "/layers.1/Tanh"),
    ]
    model = graph(made, {"decay": floats(4)}, x=("batch", 4))
    assert check_source(model).count("ops.sigmoid(self.decay)") == 1


def test_modules_within_branches() -> None:
    made = [
        node("ReduceSum", "x", "total", "/ReduceSum", keepdims=0),
        node("Greater", "total zero", "c", "/Greater"),
        node("Exp", "layers.0.a", "n", "/layers.0/Exp"),
    ]
    value = "x"
    for i in range(2):
        path = f"/layers.{i}"
        branches = {
            "then_branch": node("Mul", f"{value} n", f"t{i}", f"{path}/Mul"),
            "else_branch": node("Neg", value, f"e{i}", f"{path}/Neg"),
        }
        bodies = {
            name: helper.make_graph(
                [body],
                name,
                [],
                [helper.make_tensor_value_info(body.output[0], 1, ["batch", 4])],
            )
            for name, body in branches.items()
        }
        made.append(node("If", "c", f"h{i}", f"{path}/If", **bodies))
        value = f"h{i}"
    made.append(node("Identity", value, "y", "/Identity"))
    weights = {"layers.0.a": floats(4), "zero": np.array(0, np.float32)}
    check_source(graph(made, weights, x=("batch", 4)))
