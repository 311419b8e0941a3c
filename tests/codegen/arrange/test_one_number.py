"""An argument of a constructor has one number, though two sizes could have its name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from burnish import Tensor
from tests.harness.imported import imported
from tests.harness.reference import judged

DIM, ROWS, WORDS = 16, 40, 12


def tabled(table: str) -> onnx.ModelProto:
    """Ids into a table, two normalized layers, and a head of other words."""
    rng = np.random.default_rng(0)
    shapes = {f"{table}.weight": (ROWS, DIM), "lm_head.weight": (WORDS, DIM)}
    shapes |= {"lm_head.bias": (WORDS,)}
    nodes = [
        helper.make_node("Gather", [f"{table}.weight", "ids"], ["x0"], f"/{table}/G")
    ]
    for i in range(2):
        norm, layer = f"norm{i}", f"layer{i}"
        shapes |= {f"{norm}.weight": (DIM,), f"{norm}.bias": (DIM,)}
        shapes |= {f"{layer}.weight": (DIM, DIM), f"{layer}.bias": (DIM,)}
        weights = [f"{norm}.weight", f"{norm}.bias"]
        nodes += [
            helper.make_node(
                "LayerNormalization", [f"x{i}", *weights], [f"n{i}"], f"/{norm}/L"
            ),
            *linear(layer, f"n{i}", f"x{i + 1}"),
        ]
    nodes += linear("lm_head", "x2", "logits_out")
    held = [
        numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch"])
    y = helper.make_tensor_value_info("logits_out", TensorProto.FLOAT, ["batch", WORDS])
    made = helper.make_graph(nodes, "g", [ids], [y], held)
    opsets = [helper.make_opsetid("", 20)]
    return helper.make_model(made, opset_imports=opsets, ir_version=10)


def linear(name: str, x: str, y: str) -> list[onnx.NodeProto]:
    inputs = [x, f"{name}.weight", f"{name}.bias"]
    return [helper.make_node("Gemm", inputs, [y], f"/{name}/Gemm", transB=1)]


@pytest.mark.parametrize("table", ["codes", "rel_embed", "word_embed"])
def test_a_head_of_other_words_than_the_table(tmp_path: Path, table: str):
    path = tmp_path / "m.onnx"
    onnx.save(tabled(table), path)
    ids = np.array([0, ROWS - 1, 7])
    (expected,) = judged(tabled(table), {"ids": ids})
    got = np.asarray(imported(path, tmp_path)(Tensor(ids)))
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
