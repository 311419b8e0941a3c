"""Shapes behind operators that are newer than the file: what our readers write."""

import onnx_ir as ir
import pytest
from onnx import helper

from burnish.codegen.errors import silent
from burnish.codegen.readers.normal import build
from burnish.codegen.readers.sizes import shapes
from tests.codegen.readers.hostile import N, info, ints, model

NEWER = {
    "Unsqueeze": ({}, [0, 3], [1, 2, 3, 1, 4]),
    "Squeeze": ({}, [1], None),
    "ReduceSum": ({"keepdims": 0}, [1], [2, 4]),
    "ReduceMean": ({}, [-1], [2, 3, 1]),
    "ReduceMax": ({"keepdims": 0}, [0, 1], [4]),
    "Split": ({"axis": 1}, [1, 2], [2, 1, 4]),
}


def inferred(nodes, tensors=(), dims=(2, 3, 4), domains=()):
    made = model(
        nodes, [info("x", dims), info("v", [*dims[:-1], 9])],
        tensors=tensors, opset=12, domains=domains,
    )  # fmt: skip
    read = build(made)
    shapes.infer(read, silent)
    return read.graph.node(0).outputs[0].shape


@pytest.mark.parametrize("kind", NEWER)
def test_axes_that_are_an_input(kind):
    attributes, axes, wanted = NEWER[kind]
    outputs = ["y", "z"] if kind == "Split" else ["y"]
    dims = (2, 1, 4) if kind == "Squeeze" else (2, 3, 4)
    node = N(kind, ["x", "axes"], outputs, **attributes)
    assert inferred([node], [ints("axes", axes)], dims) == (wanted or [2, 4])


def test_axes_that_only_the_run_knows():
    """Not those of a sum over all axes."""
    nodes = [N("ReduceSum", ["x", "s"], ["y"]), N("Shape", ["x"], ["s"])]
    assert inferred(nodes) is None


def test_a_shape_of_some_axes_has_not_the_length_of_all():
    assert inferred([N("Shape", ["x"], ["y"], start=1, end=2)]) is None


def test_attention_is_shaped_like_queries_and_values():
    node = helper.make_node("Attention", ["x", "x", "v"], ["y"], domain="burnish")
    found = inferred([node], dims=(2, 8, 3, 4), domains=["burnish"])
    assert found[:3] == (2, 8, 3)
    assert isinstance(found[3], ir.SymbolicDim)
