"""What modules compute from equal weights, and an exporter once, is theirs again."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

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
