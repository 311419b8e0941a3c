"""`--typed`: annotations that mypy --strict and pyright accept."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import burnish
from burnish import nn
from burnish.codegen.pipeline import Options, generate
from tests.codegen.test_page import stack
from tests.harness.onnx_cases import cases
from tests.harness.source import check_source, floats, graph, node

INSTALLED = Path(burnish.__file__).parent.name == "burnish"


def branches() -> onnx.ModelProto:
    """A list in each branch of an If: one value's type in two places."""
    parts = [
        helper.make_graph(
            [node("SequenceConstruct", ["x", other], out)],
            out,
            [],
            [helper.make_empty_tensor_value_info(out)],
        )
        for other, out in (("x", "a"), ("t", "b"))
    ]
    choice = helper.make_node(
        "If", ["c"], ["s"], then_branch=parts[0], else_branch=parts[1]
    )
    nodes = [choice, node("ConcatFromSequence", "s", "y", axis=0)]
    inputs = {"c": (TensorProto.BOOL, ()), "x": ("n", 4)}
    return graph(nodes, {"t": floats(1, 4)}, **inputs)


GOLDENS = {
    "a block in a loop": (
        stack(0, 1),
        """
        def __init__(self) -> None:
            self.fc = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return x + ops.relu(self.fc(x))
        """,
    ),
    "several results": (
        graph([node("TopK", ["x", "k"], "v i")], {"k": np.array([2])}, "v i", x=(3, 4)),
        "def forward(self, x: Tensor) -> tuple[Tensor, ...]:",
    ),
    "a buffer is a tensor": (
        graph([node("Add", ["x", "t"], "y")], {"t": np.arange(4)}, x=(7, (3, 4))),
        "from burnish import Tensor, nn",
    ),
}


@pytest.mark.parametrize("name", GOLDENS)
def test_the_annotations(name):
    model, *goldens = GOLDENS[name]
    check_source(model, *goldens, typed=True)


def test_a_method_that_nobody_has_called_yet_is_typed(tmp_path):
    mean = node("ReduceMean", ["x", "a"], "y")
    onnx.save(graph([mean], {"a": np.array([1])}, x=(3, 4)), tmp_path / "m.onnx")
    words = ["generate", "m.onnx", "--typed", "-o", "made"]
    command = [sys.executable, "-m", "burnish.codegen", *words]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    text = (tmp_path / "made/m.py").read_text()
    assert "-> Tensor:\n        return x.mean(1, keepdims=True)" in text


def test_without_the_option_there_are_none():
    text = check_source(stack(0, 1))
    assert "->" not in re.sub(r'"""[^"]*"""', "", text)


def test_the_header_has_the_option(tmp_path):
    onnx.save(stack(0), tmp_path / "m.onnx")
    assert (
        "options: --typed." in generate(tmp_path / "m.onnx", Options(typed=True)).text
    )


def test_weights_alone_are_typed(tmp_path):
    class Net(nn.Module):
        def __init__(self):
            self.embed = nn.Embedding(10, 8)
            self.rnn = nn.LSTM(8, 8)
            self.head = nn.Linear(8, 10)

    Net().save_file(tmp_path / "net.pt")
    text = generate(tmp_path / "net.pt", Options(typed=True)).text
    assert "def forward(self, inputs: Any) -> Tensor:" in text


@pytest.mark.oracle("mypy")
def test_a_type_checker_accepts_many_models(tmp_path):
    """Every thirtieth node case, control flow and blocks, under mypy --strict."""
    if not INSTALLED:
        pytest.skip("mypy finds burnish only where it is installed: pip install .")
    assert find_spec("mypy")
    found = [case.model for case in cases().values() if case.model is not None]
    models = {f"case_{i}": model for i, model in enumerate(found[::30])}
    models |= {"stack": stack(0, 1, 2), "branches": branches()}
    for name, model in models.items():
        onnx.save(model, tmp_path / "model.onnx")
        made = generate(tmp_path / "model.onnx", Options(name=name, typed=True))
        (tmp_path / f"{name}.py").write_text(made.text)
    files = sorted(map(str, tmp_path.glob("*.py")))
    command = [sys.executable, "-m", "mypy", "--strict", *files]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
