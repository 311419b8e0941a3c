"""burnish generate --compiled: plans beside what is generated, and what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from burnish.codegen.cli import main
from burnish.kernels import library

PLANS, KERNELS = "mnist.plan.safetensors", "mnist.kernels.so"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shipped = resources.files("burnish.models.mnist").joinpath("mnist.onnx")
    (tmp_path / "mnist.onnx").write_bytes(shipped.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def kernels() -> None:
    if library() is None:
        pytest.skip("no C compiler here")


def generated(*words: str) -> dict[str, object]:
    """The row that `--json` prints of one model, and the exit code in it."""
    out = subprocess.run(
        [sys.executable, "-m", "burnish", "generate", *words, "--json"],
        capture_output=True,
        text=True,
    )
    assert out.returncode in (0, 1), out.stderr
    (row,) = json.loads(out.stdout)["generated"]
    return {**row, "code": out.returncode}


def test_what_is_written_runs_with_numpy_alone(kernels: None, folder: Path) -> None:
    row = generated("mnist.onnx", "--compiled", "--dim", "batch=1,3")
    assert row["code"] == 0
    assert row["files"] == ["mnist.py", "mnist.safetensors", PLANS, KERNELS]
    assert row["plans"] == ["float32[1, 28, 28]", "float32[3, 28, 28]"]
    program = """
import sys
import numpy as np
from mnist import Model
from burnish import Tensor
from burnish.planned import explain
model = Model.from_file()
model(Tensor(np.zeros((1, 28, 28), np.float32)))
late = ("burnish.plan", "burnish.capture", "burnish.codegen", "onnx", "hashlib")
found = [name for name in late if name in sys.modules]
assert not found, found
plain = Model.from_file("mnist.safetensors")
for size in (1, 3, 2):
    x = Tensor(np.random.default_rng(0).random((size, 28, 28), np.float32))
    np.testing.assert_allclose(model(x).numpy(), plain(x).numpy(), atol=1e-4)
report = explain(model)
assert "1 x eagerly: no plan for float32 (2, 28, 28)" in report, report
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "empty"), "PATH": ""},
    )
    assert not done.returncode, done.stderr
    assert not done.stderr
    assert main(["verify", "mnist.onnx", "mnist.py"]) == 0
    assert main(["check", "mnist.py"]) == 0


def test_it_is_generated_again(kernels: None, folder: Path) -> None:
    assert main(["generate", "mnist.onnx", "--compiled"]) == 0
    before = (folder / PLANS).read_bytes()
    assert generated("mnist.onnx", "--compiled")["code"] == 0
    assert (folder / PLANS).read_bytes() == before


def _drawing(path: Path) -> None:
    """A model that adds noise: no plan gives it."""
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["noise"]),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("Add", ["y", "noise"], ["z"]),
    ]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 4])]
    made = [helper.make_tensor_value_info("z", TensorProto.FLOAT, [4, 4])]
    weight = onnx.numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")
    graph = helper.make_graph(nodes, "noisy", given, made, [weight])
    opset = helper.make_opsetid("", 18)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=9), path)


def test_what_cannot_be_planned_is_reported_and_the_rest_is_written(
    kernels: None, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _drawing(folder / "noisy.onnx")
    assert main(["generate", "noisy.onnx", "--compiled"]) == 1
    report = capsys.readouterr()
    assert "not planned: noisy.py: it draws random numbers" in report.err
    assert report.out.split() == ["noisy.py", "noisy.safetensors"]
    assert not (folder / "noisy.plan.safetensors").exists()
    assert not (folder / "noisy.kernels.so").exists()


def test_without_kernels_there_is_a_reason(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("burnish.plan.store.library", lambda: None)
    assert main(["generate", "mnist.onnx", "--compiled"]) == 1
    assert "there are no kernels" in capsys.readouterr().err
    assert (folder / "mnist.safetensors").exists()


def test_files_of_somebody_stay(
    kernels: None, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / KERNELS).write_text("mine\n")
    assert main(["generate", "mnist.onnx", "--compiled"]) == 1
    assert f"{KERNELS} was not written by Burnish" in capsys.readouterr().err
    assert not (folder / "mnist.py").exists()
    assert main(["generate", "mnist.onnx", "--compiled", "--force"]) == 0
    assert (folder / f"{KERNELS}.bak").read_text() == "mine\n"
