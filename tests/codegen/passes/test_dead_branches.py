"""Branches that never run may not fit what is known of the shapes."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from burnish.codegen.backend import BurnishBackend

FLOAT, BOOL, INT64 = (getattr(onnx.TensorProto, n) for n in ("FLOAT", "BOOL", "INT64"))
THETA = np.array([[[1, 0.2, 0.5], [0, 1, 0]]], np.float32)
THETA_3D = np.arange(12, dtype=np.float32).reshape(1, 3, 4) / 12


def built(nodes, inputs, held, outputs=("y",), dtype=FLOAT):
    """A model of arrays as inputs and arrays as initializers."""
    kinds = helper.np_dtype_to_tensor_dtype
    ports = [
        helper.make_tensor_value_info(name, kinds(a.dtype), a.shape)
        for name, a in inputs.items()
    ]
    results = [helper.make_tensor_value_info(name, dtype, None) for name in outputs]
    tensors = [numpy_helper.from_array(a, name) for name, a in held.items()]
    graph = helper.make_graph(nodes, "g", ports, results, tensors)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10
    )


def branch(name, nodes):
    result = helper.make_tensor_value_info(f"{name}_y", FLOAT, None)
    return helper.make_graph(nodes, name, [], [result])


def check(model, feeds):
    expected = ReferenceEvaluator(model).run(None, feeds)
    ours = BurnishBackend.run_model(model, list(feeds.values()))
    for ours_, expected_ in zip(ours, expected, strict=True):
        np.testing.assert_allclose(ours_, expected_, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("known", [("theta", "size"), ("size",), ("theta",), ()])
@pytest.mark.parametrize(
    ("theta", "size"), [(THETA, (1, 1, 3, 4)), (THETA_3D, (1, 1, 2, 3, 4))]
)
def test_affine_grid(known, theta, size):
    """Its definition chooses between two and three axes by an If."""
    given = {"theta": theta, "size": np.array(size, np.int64)}
    node = helper.make_node("AffineGrid", ["theta", "size"], ["y"], align_corners=0)
    held = {name: given[name] for name in known}
    feeds = {name: a for name, a in given.items() if name not in known}
    check(built([node], feeds, held), feeds)


def turned(name, perm):
    return branch(
        name, [helper.make_node("Transpose", ["x"], [f"{name}_y"], perm=perm)]
    )


X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("as_input", [False, True])
def test_a_branch_for_another_rank(as_input):
    """Whether the condition is computed from shapes or is handed in."""
    choice = helper.make_node(
        "If",
        ["four"],
        ["y"],
        then_branch=turned("then", [0, 1, 3, 2]),
        else_branch=turned("else", [0, 2, 1]),
    )
    if as_input:
        feeds = {"x": X, "four": np.array(False)}
        check(built([choice], feeds, {}), feeds)
        return
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Size", ["shape"], ["rank"]),
        helper.make_node("Equal", ["rank", "wanted"], ["four"]),
        choice,
    ]
    check(built(nodes, {"x": X}, {"wanted": np.array(4)}), {"x": X})
