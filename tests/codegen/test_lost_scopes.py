"""Nodes that a tool made anew are in the modules of the author."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from burnish.codegen.pipeline import generate
from burnish.codegen.program import Level, Scope
from burnish.codegen.weights import lost_scopes

HEADS = """
turned = Transpose<perm=[1, 0, 2]>({x})
rows = Reshape(turned, two)
flat = Gemm(rows, {weights}, {biases})
both = Reshape(flat, four)
q, k = Split<axis=2, num_outputs=2>(both)
product = Mul(q, k)
three = ReduceSum<keepdims=0>(product, axes)
back = Transpose<perm=[1, 0, 2]>(three)
"""
"""A module of two projections whose product is summed, (2, 3, 4) -> (2, 3, 4)."""
SHAPES = {"two": [6, 4], "four": [3, 2, 2, 4], "axes": [2]}


def model(tmp_path: Path, name: str, counted: tuple[str, ...]) -> Path:
    """Two blocks of x + heads(x); kinds of nodes that a simplifier gave a number."""
    rng = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    held = [numpy_helper.from_array(np.array(v), k) for k, v in SHAPES.items()]
    x = "x"
    for block in range(2):
        weights, biases = f"w{block}", f"blocks.{block}.heads.bias"
        for key, shape in ((weights, (4, 8)), (biases, (8,))):
            array = rng.normal(size=shape).astype(np.float32)
            held.append(numpy_helper.from_array(array, key))
        text = HEADS.format(x=x, weights=weights, biases="bias")
        graph = onnx.parser.parse_graph(f"g (float y) => (float z) {{ {text} }}")
        for node in graph.node:
            own = [*node.input, *node.output]
            places = {n: f"{n}{block}" for n in own if n not in (x, weights, *SHAPES)}
            places["bias"] = biases
            node.name = f"/blocks.{block}/heads/{node.op_type}"
            for names in (node.input, node.output):
                names[:] = [places.get(each, each) for each in names]
        nodes += graph.node
        total = f"total{block}"
        name_of_sum = f"/blocks.{block}/Add"
        nodes.append(helper.make_node("Add", [x, f"back{block}"], [total], name_of_sum))
        x = total
    for number, node in enumerate(nodes):
        if node.op_type in counted:
            node.name = f"{node.op_type}_{number}"
    shape = [2, 3, 4]
    given, result = (
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name in ("x", x)
    )
    graph = helper.make_graph(nodes, "g", [given], [result], held)
    opset = [helper.make_opsetid("", 18)]
    made = helper.make_model(graph, opset_imports=opset, ir_version=9)
    path = tmp_path / name
    onnx.save(made, path)
    return path


@pytest.mark.parametrize("counted", [("Reshape",), ("Reshape", "Gemm"), ("Mul",)])
def test_counted_nodes_are_where_their_neighbours_are(
    tmp_path: Path, counted: tuple[str, ...]
) -> None:
    twin = generate(model(tmp_path, "twin.onnx", ())).text
    made = generate(model(tmp_path, "made.onnx", counted)).text
    assert "class Block(" in twin
    assert made.partition("\nclass")[2] == twin.partition("\nclass")[2]


def scope(path: str, kind: str = "") -> Scope:
    return tuple(Level(name, kind) for name in path.split("."))


def test_the_module_between_others_does_not_depend_on_their_order() -> None:
    scopes = [scope("b.x"), scope("a.x"), scope("a.y", "A"), scope("a.y"), scope("b.y")]
    found = {lost_scopes._inside([*order]) for order in permutations(scopes)}
    assert found == {scope("a.y")}


def test_modules_are_compared_with_their_neighbours_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = []
    common = lost_scopes._common
    monkeypatch.setattr(
        lost_scopes, "_common", lambda a, b: calls.append(a) or common(a, b)
    )
    many = [scope(f"blocks.{number}.norm") for number in range(100)]
    assert lost_scopes._inside([*many, scope("head.norm"), scope("head.act")]) == (
        scope("head")
    )
    assert len(calls) < 200
