"""Branches of a condition: two modules of one class where both do the same."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.harness.source import check_source, floats, graph, node


def branch(name: str, activation: str = "Relu", after: str = "") -> onnx.GraphProto:
    """Two layers with weights of this branch's own."""
    nodes = [
        node("Gemm", f"x {name}.fc1.weight {name}.fc1.bias", f"{name}u", transB=1),
        node(activation, f"{name}u", f"{name}v"),
        node("Gemm", f"{name}v {name}.fc2.weight", f"{name}w", transB=1),
    ]
    if after:
        nodes.append(node(after, f"{name}w", f"{name}y"))
    end = f"{name}y" if after else f"{name}w"
    result = helper.make_tensor_value_info(end, onnx.TensorProto.FLOAT, ["batch", 2])
    return helper.make_graph(nodes, name, [], [result])


def choice(wide: int, narrow: int, other: onnx.GraphProto) -> onnx.ModelProto:
    """One of two branches, by a flag."""
    held = {}
    for name, hidden in (("large", wide), ("small", narrow)):
        held[f"{name}.fc1.weight"] = floats(hidden, 4, seed=hidden)
        held[f"{name}.fc1.bias"] = floats(hidden)
        held[f"{name}.fc2.weight"] = floats(2, hidden, seed=hidden + 1)
    nodes = [
        node("If", "flag", "z", then_branch=branch("large"), else_branch=other),
        node("Sigmoid", "z", "y"),
    ]
    flag = (onnx.TensorProto.BOOL, ())
    return graph(nodes, held, x=("batch", 4), flag=flag)


def feeds(flag: bool) -> dict[str, np.ndarray]:
    return {"x": floats(3, 4), "flag": np.array(flag)}


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize(("wide", "narrow"), [(8, 8), (8, 6)])
def test_twins_share_a_class(wide, narrow, flag):
    text = check_source(
        choice(wide, narrow, branch("small")),
        """
        return self.fc2(ops.relu(self.fc1(x)))
        """,
        "z = self.large(x) if flag else self.small(x)",
        feeds=feeds(flag),
    )
    assert text.count("class ") == 2
    assert ("Large(8)" in text) == (wide != narrow)


def test_keys_begin_with_the_files_words(tmp_path):
    text = check_source(
        choice(8, 6, branch("small")),
        "self.large = Large(8)\nself.small = Large(6)",
        feeds=feeds(True),
    )
    assert "fc12" not in text


@pytest.mark.parametrize(
    "other",
    [branch("small", "Tanh"), branch("small", after="Neg")],
    ids=["another function", "one step more"],
)
def test_branches_that_do_different_things_stay_statements(other):
    text = check_source(choice(8, 8, other), feeds=feeds(False))
    assert text.count("class ") == 1


def test_flat_code_spells_both_out():
    text = check_source(choice(8, 6, branch("small")), feeds=feeds(True), flat=True)
    assert text.count("class ") == 1


def test_branches_of_one_layer_stay_statements():
    """A class around one layer says nothing; two linear layers have one form."""

    def one(name: str) -> onnx.GraphProto:
        made = [node("Gemm", f"x {name}.fc.weight", f"{name}w", transB=1)]
        kind = onnx.TensorProto.FLOAT
        result = helper.make_tensor_value_info(f"{name}w", kind, ["batch", 2])
        return helper.make_graph(made, name, [], [result])

    held = {f"{name}.fc.weight": floats(2, 4, seed=n) for n, name in enumerate("ab")}
    nodes = [
        node("If", "flag", "z", then_branch=one("a"), else_branch=one("b")),
        node("Sigmoid", "z", "y"),
    ]
    flag = (onnx.TensorProto.BOOL, ())
    text = check_source(
        graph(nodes, held, x=("batch", 4), flag=flag), feeds=feeds(True)
    )
    assert text.count("class ") == 1
