"""Output of `--explain`: the changes of every pass, the reasons of every class."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from burnish.codegen import passes
from burnish.codegen.account import Account, Accounts
from burnish.codegen.pipeline import Options, generate
from tests.harness.source import floats

WIDTH = 8


class Scoped:
    """A chain of operators in scopes, with weights of its own."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}

    def node(self, where: str, kind: str, *inputs: str, **attributes: Any) -> str:
        made = f"v{len(self.nodes)}"
        name = f"/{where}/{kind}" if where else kind
        self.nodes.append(helper.make_node(kind, inputs, [made], name, **attributes))
        return made

    def linear(self, where: str, x: str, after: int = WIDTH) -> str:
        path = where.replace("/", ".")
        self.weights[f"{path}.weight"] = floats(WIDTH, after)
        self.weights[f"{path}.bias"] = floats(after)
        y = self.node(where, "MatMul", x, f"{path}.weight")
        return self.node(where, "Add", y, f"{path}.bias")

    def report(self, y: str, folder: Path, **options: Any) -> list[str]:
        self.nodes.append(helper.make_node("Identity", [y], ["y"]))
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes,
            "g",
            [value("x", TensorProto.FLOAT, ["batch", WIDTH])],
            [value("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(w, name) for name, w in self.weights.items()],
        )
        opsets = [helper.make_opsetid("", 20)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        onnx.save(model, folder / "model.onnx")
        lines: list[str] = []
        generate(folder / "model.onnx", Options(**options), explain=lines.append)
        return lines


def blocks(kinds: list[str]) -> tuple[Scoped, str]:
    """Two layers with an activation between, in one scope for each of the kinds."""
    graph, x = Scoped(), "x"
    for number, kind in enumerate(kinds):
        where = f"blocks.{number}"
        y = graph.node(where, kind, graph.linear(f"{where}/fc1", x))
        x = graph.node(where, "Add", x, graph.linear(f"{where}/fc2", y))
    return graph, x


def test_every_pass_says_what_it_did(tmp_path: Path) -> None:
    graph, x = blocks(["Relu", "Relu"])
    lines = graph.report(x, tmp_path)
    for step in passes.PASSES:
        assert sum(line.startswith(f"{step.__name__}: ") for line in lines) == 1
    assert "untie_weights: no change" in lines
    assert "Linear: 4, first at '/blocks.0/fc1/Add'" in "\n".join(lines)


def test_without_passes_only_what_ran_is_reported(tmp_path: Path) -> None:
    graph, x = blocks(["Relu"])
    lines = graph.report(x, tmp_path, simplify=False)
    steps = {line.partition(":")[0] for line in lines}
    assert steps & {step.__name__ for step in passes.PASSES} == {
        "widen_integers",
        "drop_dead",
    }


@pytest.mark.parametrize(
    ("kinds", "lines_of"),
    {
        "equal bodies are one class, and a loop": (
            ["Relu", "Relu"],
            ["class Block: blocks.* (2 times)", "blocks: a list and a loop, all alike"],
        ),
        "another activation": (
            ["Relu", "Relu", "Tanh"],
            [
                "class Block: blocks.* (2 times)",
                "class Block2: blocks.2",
                "  not Block: its forward has ops.tanh and lacks ops.relu",
                "blocks: a Sequential and no loop, 0 and 2 are not alike",
            ],
        ),
    }.values(),
)
def test_classes_and_lists(
    kinds: list[str], lines_of: list[str], tmp_path: Path
) -> None:
    graph, x = blocks(kinds)
    lines = graph.report(x, tmp_path)
    assert [line for line in lines if line in lines_of] == lines_of
    assert "no class, at most one layer: blocks.*.fc1" in "\n".join(lines)


def test_a_scope_that_cannot_stand_together(tmp_path: Path) -> None:
    graph = Scoped()
    a = graph.linear("first/fc1", "x")
    b = graph.node("second", "Relu", graph.linear("second/fc", a))
    x = graph.node("first", "Add", graph.linear("first/fc2", b), a)
    x = graph.node("second", "Relu", graph.linear("second/last", x))
    lines = graph.report(x, tmp_path)
    assert "first: no module, second has to run amid it" in lines


def test_sizes_and_parts_that_make_one_class(tmp_path: Path) -> None:
    graph, x = Scoped(), "x"
    for name, after in (("one", 4), ("two", 6)):
        y = graph.node(name, "Relu", graph.linear(f"{name}/fc1", x, after))
        graph.weights[f"{name}.fc2.weight"] = floats(after, WIDTH)
        y = graph.node(f"{name}/fc2", "MatMul", y, f"{name}.fc2.weight")
        x = graph.node(name, "Add", x, y)
    for node in graph.nodes:
        node.metadata_props.add(
            key="pkg.torch.onnx.name_scopes",
            value=repr(["", *node.name.split("/")[1:-1], node.op_type]),
        )
        classes = ["Net", "Block", *(["Linear"] if "fc" in node.name else []), "aten"]
        node.metadata_props.add(
            key="pkg.torch.onnx.class_hierarchy", value=repr(classes)
        )
    lines = graph.report(x, tmp_path)
    assert "class Block: one" in lines
    assert "  the same as two but for features: one class" in lines


def test_flat_and_nameless_say_so(tmp_path: Path) -> None:
    graph, x = blocks(["Relu", "Relu"])
    assert "scopes: ignored, one flat class was requested" in graph.report(
        x, tmp_path, flat=True
    )
    graph, x = Scoped(), "x"
    for number in range(4):
        graph.weights[f"w{number}"] = floats(WIDTH, WIDTH)
        x = graph.node("", "Relu", graph.node("", "MatMul", x, f"w{number}"))
    report = "\n".join(graph.report(x, tmp_path))
    assert "scopes: 0 of 4 layers say which module they are of; what the" in report


def test_what_nearly_fits_is_reported_shortly() -> None:
    account = Account(near=True)
    order = {f"n{i}": i for i in range(20)}
    for place in reversed(order):
        account.left("Gelu", place, f"reason {int(place[1:]) // 4}")
    account.left("Gelu", "n99", "it has become something else")
    account.did("Swish", "n3")
    assert list(account.lines(order, order)) == [
        "Swish: at 'n3'",
        "not Gelu: 3, first at 'n0': reason 0",
        "not Gelu: 4, first at 'n4': reason 1",
        "not Gelu: 4, first at 'n8': reason 2",
        "not Gelu: 2 more reasons",
    ]


def test_an_idle_step_says_so() -> None:
    accounts, lines = Accounts(), list[str]()
    accounts.of("first").did("thing", "a")
    accounts.of("second")
    accounts.explain_all(lines.append)
    assert lines == ["first: thing: at 'a'", "second: no change"]


def test_nothing_is_reported_twice(tmp_path: Path) -> None:
    graph, x = blocks(["Relu", "Tanh", "Relu", "Sigmoid"])
    lines = [line for line in graph.report(x, tmp_path) if not line.startswith(" ")]
    assert len(set(lines)) == len(lines)
    assert not [line for line in lines if re.search(r"#\d", line)]
