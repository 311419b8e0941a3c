"""Graphs that are long, wide or deep come through, flat and in modules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.harness.both_forms import both_forms, same_numbers
from tests.harness.reference import judged
from tests.harness.source import floats, graph, node

KINDS = ("Abs", "Neg", "Tanh", "Sigmoid", "Relu", "Sin", "Cos", "Atan")
MANY = 400
"""More than Python nests, at three frames each."""


def _sum(many: int = MANY) -> onnx.ModelProto:
    made = [node(KINDS[i % 8], "x", f"v{i}") for i in range(many)]
    made.append(node("Sum", [n.output[0] for n in made], "y"))
    return graph(made, x=("batch", 4))


def _additions(many: int = MANY) -> onnx.ModelProto:
    """x + a + b + ..., which single-use expressions would nest."""
    weights = {f"w{i}": floats(4, seed=i) for i in range(many)}
    ends = ["x", *(f"v{i}" for i in range(many - 1)), "y"]
    made = [
        node(("Add", "Mul", "Sub")[i % 3], [ends[i], f"w{i}"], ends[i + 1])
        for i in range(many)
    ]
    return graph(made, weights, x=("batch", 4))


def _concat(many: int = MANY) -> onnx.ModelProto:
    made = [node(KINDS[i % 8], "x", f"v{i}") for i in range(many // 4)]
    made.append(node("Concat", [n.output[0] for n in made], "y", axis=-1))
    return graph(made, x=("batch", 4))


def _results(many: int = MANY) -> onnx.ModelProto:
    made = [node(KINDS[i % 8], "x", f"y{i}") for i in range(many // 4)]
    return graph(made, outputs=" ".join(n.output[0] for n in made), x=("batch", 4))


def _scopes(many: int = MANY) -> onnx.ModelProto:
    """A layer in each of many modules, one in the other."""
    levels = many * 3 // 40
    path = [f"m{depth}" for depth in range(levels)]
    weights, made, x = {}, [], "x"
    for depth in range(1, levels + 1):
        name = ".".join(path[:depth])
        weights[f"{name}.fc.weight"] = floats(4, 4, seed=depth)
        where = "/".join(path[:depth])
        made.append(
            node("MatMul", [x, f"{name}.fc.weight"], f"h{depth}", f"/{where}/fc/MatMul")
        )
        made.append(node("Tanh", f"h{depth}", f"a{depth}", f"/{where}/Tanh"))
        x = f"a{depth}"
    return graph([*made, node("Identity", x, "y")], weights, x=("batch", 4))


def _branches(many: int = MANY) -> onnx.ModelProto:
    """Ifs in a row, and inside each other."""
    made, x, inside = [], "x", many * 3 // 40
    for i in range(many // 4):
        then = [node("Neg", x, f"t{i}")]
        made.append(_choice(then, node("Sin", x, f"e{i}"), f"b{i}"))
        x = f"b{i}"
    inner = [node("Neg", x, "n")]
    for i in range(inside):
        inner = [_choice(inner, node("Sin", x, f"s{i}"), f"z{i}")]
    return graph(
        [*made, *inner, node("Identity", f"z{inside - 1}", "y")], c=(9, ()), x=(2, 4)
    )


def _choice(
    then: list[onnx.NodeProto], otherwise: onnx.NodeProto, output: str
) -> onnx.NodeProto:
    def block(nodes: list[onnx.NodeProto]) -> onnx.GraphProto:
        ends = [helper.make_empty_tensor_value_info(nodes[-1].output[0])]
        return helper.make_graph(nodes, "block", [], ends)

    return helper.make_node(
        "If", ["c"], [output], then_branch=block(then), else_branch=block([otherwise])
    )


def _unrolled(many: int = MANY) -> onnx.ModelProto:
    """A recurrent cell, many times after itself."""
    steps = many // 4
    weights = {"w": floats(4, 4), "u": floats(4, 4, seed=1), "b": floats(4, seed=2)}
    made, h = [], "h0"
    for t in range(steps):
        weights[f"t{t}"] = np.array(t)
        made += [
            node("Gather", ["x", f"t{t}"], f"x{t}", axis=1),
            node("MatMul", [f"x{t}", "w"], f"p{t}"),
            node("MatMul", [h, "u"], f"q{t}"),
            node("Sum", [f"p{t}", f"q{t}", "b"], f"s{t}"),
            node("Tanh", f"s{t}", f"h{t + 1}"),
        ]
        h = f"h{t + 1}"
    weights["h0"] = np.zeros((1, 4), np.float32)
    return graph([*made, node("Identity", h, "y")], weights, x=("batch", steps, 4))


GRAPHS = {
    "a sum": _sum,
    "additions in a row": _additions,
    "a concat": _concat,
    "results": _results,
    "scopes in scopes": _scopes,
    "branches": _branches,
    "an unrolled cell": _unrolled,
}


@pytest.mark.parametrize("build", GRAPHS.values(), ids=GRAPHS.keys())
def test_numbers_of_large_graphs(
    build: Callable[[], onnx.ModelProto], tmp_path: Path
) -> None:
    model = build()
    onnx.save(model, tmp_path / "model.onnx")
    given = [
        np.array(True) if value.name == "c" else floats(*_shape(value), seed=9)
        for value in model.graph.input
    ]
    found = same_numbers(both_forms(tmp_path / "model.onnx", tmp_path), given)
    names = [value.name for value in model.graph.input]
    feeds = dict(zip(names, given, strict=True))
    expected = judged(model, feeds)
    for y, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(y, wanted, rtol=2e-4, atol=2e-4)


def _shape(value: onnx.ValueInfoProto) -> list[int]:
    return [d.dim_value or 2 for d in value.type.tensor_type.shape.dim]
