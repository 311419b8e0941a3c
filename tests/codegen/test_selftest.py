"""Golden inputs and outputs in generated source, and `python -m MODULE --selftest`."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from burnish import serialize
from burnish.codegen.errors import UsageError
from burnish.codegen.pipeline import Options, generate, write
from burnish.models._gallery import BY_MODULE
from tests.harness.alone import ran

MNIST = BY_MODULE["mnist"].file

ALONE = """
import runpy
sys.path.insert(0, sys.argv.pop(1))
sys.meta_path.pop(0)
sys.modules["burnish"] = None
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""


def made(folder: Path, model: Path = MNIST, **options: bool) -> list[Path]:
    settings = Options(selftest=True, **options)
    return write(generate(model, settings), folder / "app")


def selftest(
    folder: Path, *words: str | Path, name: str = "mnist", alone: bool = False
) -> subprocess.CompletedProcess[str]:
    if alone:
        code, printed = ran(ALONE, folder, f"app.{name}", *words)
        return subprocess.CompletedProcess(ALONE, code, printed, printed)
    return subprocess.run(
        [sys.executable, "-m", f"app.{name}", *map(str, words)],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )


@pytest.mark.parametrize("standalone", [False, True], ids=["package", "standalone"])
@pytest.mark.parametrize("embed", [False, True], ids=["file", "embedded"])
def test_it_passes(tmp_path: Path, standalone: bool, embed: bool) -> None:
    made(tmp_path, standalone=standalone, embed=embed)
    done = selftest(tmp_path, "--selftest", alone=standalone)
    assert done.returncode == 0, done.stderr
    assert "output 0: float32[2, 10], largest difference" in done.stdout
    assert "limit" in done.stdout
    assert "selftest passed" in done.stdout


@pytest.mark.parametrize("standalone", [False, True], ids=["package", "standalone"])
def test_other_numbers_fail(tmp_path: Path, standalone: bool) -> None:
    _, stored = made(tmp_path, standalone=standalone)
    state = {name: array.copy() for name, array in serialize.load_file(stored).items()}
    state["linear2.bias"][3] += 0.5
    other = tmp_path / "other.safetensors"
    serialize.save_file(state, other)
    done = selftest(tmp_path, "--selftest", "--weights", other, alone=standalone)
    assert done.returncode == 1
    assert "largest difference 5.0e-01, limit" in done.stderr
    assert "selftest FAILED" in done.stdout


@pytest.mark.parametrize("standalone", [False, True], ids=["package", "standalone"])
def test_damaged_and_missing_weights_fail(tmp_path: Path, standalone: bool) -> None:
    _, stored = made(tmp_path, standalone=standalone)
    data = bytearray(stored.read_bytes())
    data[-2] ^= 64
    stored.write_bytes(data)
    done = selftest(tmp_path, "--selftest", alone=standalone)
    assert done.returncode == 1
    assert "their sha256 has changed" in done.stderr
    stored.unlink()
    done = selftest(tmp_path, "--selftest", alone=standalone)
    assert done.returncode == 1
    assert "expected weights beside the source, found no file" in done.stderr


def test_weights_may_come_from_elsewhere(tmp_path: Path) -> None:
    _, stored = made(tmp_path / "with")
    made(tmp_path, weights=False)
    done = selftest(tmp_path, "--selftest", "--weights", stored)
    assert done.returncode == 0, done.stderr


def test_without_an_option_it_says_which(tmp_path: Path) -> None:
    made(tmp_path)
    done = selftest(tmp_path)
    assert done.returncode == 2
    assert "--selftest" in done.stderr


def graph(folder: Path, *nodes: onnx.NodeProto) -> Path:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    model = helper.make_model(
        helper.make_graph(nodes, "g", [x], [y]),
        opset_imports=[helper.make_opsetid("", 21)],
    )
    onnx.save(model, folder / "net.onnx")
    return folder / "net.onnx"


@pytest.mark.parametrize("standalone", [False, True], ids=["package", "standalone"])
def test_every_kind_of_output(standalone: bool, tmp_path: Path) -> None:
    kinds = {
        "RandomNormalLike": (TensorProto.FLOAT, "drawn by chance"),
        "Log": (TensorProto.FLOAT, "largest difference"),
        "Neg": (TensorProto.INT64, "0 of 24 elements differ"),
        "Identity": (TensorProto.STRING, "0 of 24 elements differ"),
    }
    value = helper.make_tensor_value_info
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node(name, [f"x{name}"], [f"y{name}"]) for name in kinds],
            "g",
            [value(f"x{name}", kind, ["n", 3]) for name, (kind, _) in kinds.items()],
            [value(f"y{name}", kind, None) for name, (kind, _) in kinds.items()],
        ),
        opset_imports=[helper.make_opsetid("", 21)],
    )
    onnx.save(model, tmp_path / "net.onnx")
    made(tmp_path, tmp_path / "net.onnx", standalone=standalone)
    done = selftest(tmp_path, "--selftest", name="net", alone=standalone)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for number, (name, (_, message)) in enumerate(kinds.items()):
        (line,) = (line for line in lines if line.startswith(f"output {number}: "))
        assert message in line, name


@pytest.mark.parametrize("fill", [-1e9, -3e38])
def test_what_a_mask_fills_in_does_not_hide_other_weights(
    tmp_path: Path, fill: float
) -> None:
    def constant(name: str, value: np.ndarray) -> onnx.NodeProto:
        held = numpy_helper.from_array(value, name)
        return helper.make_node("Constant", [], [name], value=held)

    weight = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    source = graph(
        tmp_path,
        constant("w", weight),
        constant("kept", np.array([True, True, False, True, False])),
        constant("fill", np.float32(fill)),
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Where", ["kept", "h", "fill"], ["y"]),
    )
    _, stored = made(tmp_path, source)
    assert selftest(tmp_path, "--selftest", name="net").returncode == 0
    state = {name: array.copy() for name, array in serialize.load_file(stored).items()}
    (name,) = (name for name, array in state.items() if array.ndim == 2)
    state[name] *= 1.01
    other = tmp_path / "other.safetensors"
    serialize.save_file(state, other)
    done = selftest(tmp_path, "--selftest", "--weights", other, name="net")
    assert done.returncode == 1
    assert "selftest FAILED" in done.stdout


def test_the_same_model_gives_the_same_text() -> None:
    options = Options(selftest=True)
    assert generate(MNIST, options).text == generate(MNIST, options).text


def test_weights_alone_have_no_outputs(tmp_path: Path) -> None:
    weights = tmp_path / "net.safetensors"
    serialize.save_file({"fc.weight": np.zeros((2, 2), "f")}, weights)
    with pytest.raises(
        UsageError, match="selftest: expected a model file with a graph"
    ):
        generate(weights, Options(selftest=True))
