"""A tensor that an exporter merged is split where its modules' weights differ now."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from tests.codegen.writers.test_weights_back import back, saved, state
from tests.harness.source import floats, graph, node


def test_readers_are_distinguished_through_fused_nodes(tmp_path: Path) -> None:
    steps, x = [], "x"
    for i in range(2):
        at = f"/layers.{i}/fc"
        steps += [
            node("MatMul", f"{x} onnx::MatMul_9", f"{at}/MatMul_o", f"{at}/MatMul"),
            node("Add", f"layers.{i}.fc.bias {at}/MatMul_o", f"{at}/o", f"{at}/Add"),
            node("Relu", f"{at}/o", f"r{i}", f"/layers.{i}/Relu"),
        ]
        x = f"r{i}"
    held = {
        "onnx::MatMul_9": floats(4, 4),
        "layers.0.fc.bias": floats(4, seed=1),
        "layers.1.fc.bias": floats(4, seed=2),
    }
    model = graph(steps, held, "r1", x=("batch", 4))
    model.producer_name = "pytorch"
    path = saved(model, tmp_path)
    weights = state(path, tmp_path)
    first, second = sorted(n for n, v in weights.items() if v.ndim == 2)
    weights[second] += 1
    after = back(weights, path, tmp_path)
    np.testing.assert_array_equal(after["onnx::MatMul_9"], weights[first].T)
    np.testing.assert_array_equal(after["onnx::MatMul_9_1"], weights[second].T)
    given = floats(3, 4, seed=5)
    y = np.maximum(given @ weights[first].T + held["layers.0.fc.bias"], 0)
    y = np.maximum(y @ weights[second].T + held["layers.1.fc.bias"], 0)
    tuned = onnx.load(tmp_path / "tuned.onnx")
    found = ReferenceEvaluator(tuned).run(None, {"x": given})
    np.testing.assert_allclose(np.asarray(found[0]), y, rtol=1e-5, atol=1e-6)
