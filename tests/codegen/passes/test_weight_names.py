"""Weights get their names back, and are one or several as the modules have them."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper, numpy_helper

from burnish.codegen.account import Account
from burnish.codegen.passes.graph import separate_names
from burnish.codegen.passes.weights.untie import untie_weights
from burnish.codegen.weights import constants
from tests.codegen.passes.models import (
    RANDOM,
    model_of,
    prepared,
    run,
    twin,
    value,
)

X = RANDOM.standard_normal((2, 3, 8)).astype(np.float32)


@pytest.mark.parametrize(
    ("first", "second"),
    [("first.bias", "second.bias"), ("onnx::Conv_197", "onnx::Conv_194")],
    ids=["named", "folded"],
)
def test_merged_weights_get_their_names_back(first, second):
    bias = np.arange(8, dtype=np.float32)
    proto = onnx.helper.make_model(
        helper.make_graph(
            [
                helper.make_node("Identity", [second], [first]),
                helper.make_node("Add", ["x", first], ["a"]),
                helper.make_node("Add", ["a", second], ["y"]),
            ],
            "g",
            [value("x", [2, 3, 8])],
            [value("y", [2, 3, 8])],
            [numpy_helper.from_array(bias, second)],
        ),
        opset_imports=[helper.make_opsetid("", 18)],
    )
    model = prepared(proto)
    left, lines = twin(model, x=X)
    assert left == ["Add", "Add"]
    assert sorted(model.graph.initializers) == sorted([first, second])
    assert any(first in line for line in lines)


def test_weights_of_a_list_of_modules_are_untied_by_scope():
    text = """a = MatMul(x, val_5) b = Mul(a, scale)
        c = MatMul(b, val_5) d = Mul(c, scale)
        e = MatMul(d, tied) f = Mul(e, s) h = Mul(f, s) y = MatMul(h, tied)"""
    weights = {
        "val_5": np.eye(3, dtype=np.float32),
        "scale": np.float32([1, 2, 3]),
        "tied": np.eye(3, dtype=np.float32),
        "s": np.float32([2, 2, 2]),
    }
    model = model_of(text, weights=weights, x="2, 3")
    model.graph.initializers["scale"].name = "layers.0.scale"
    scopes = ["layers.0", "layers.0", "layers.1", "layers.1", "head", "", "", "tail"]
    for node, scope in zip(model.graph, scopes, strict=True):
        path = ["", *([scope] if scope else []), "call"]
        node.metadata_props["pkg.torch.onnx.name_scopes"] = repr(path)
    feeds = {"x": RANDOM.normal(size=(2, 3)).astype(np.float32)}
    before = run(model, feeds)
    assert untie_weights(model, Account())
    assert not untie_weights(model, Account())
    found = [node.inputs[1].name for node in model.graph]
    assert found[0] == "val_5"
    assert found[1:4] == ["layers.0.scale", "val_1000000", "layers.1.scale"]
    assert found[4:] == ["tied", "s", "s", "tied"]
    np.testing.assert_array_equal(run(model, feeds)[0], before[0])


def test_a_buffer_that_modules_share_is_one_in_each():
    model = model_of(
        "a = Mul(x, s) y = Mul(a, s)", weights={"s": np.float32([1, 2, 3])}, x="2, 3"
    )
    shared = model.graph.initializers["s"]
    shared.name = "layers.0.scale"
    shared.metadata_props["pkg.torch.export.graph_signature.InputSpec.kind"] = "BUFFER"
    for node, scope in zip(model.graph, ("layers.0", "layers.1"), strict=True):
        node.metadata_props["pkg.torch.onnx.name_scopes"] = repr(["", scope, "call"])
    assert untie_weights(model, Account())
    assert [node.inputs[1].name for node in model.graph] == [
        "layers.0.scale",
        "layers.1.scale",
    ]
    assert all(constants.is_buffer(node.inputs[1]) for node in model.graph)


def test_a_weight_of_a_module_that_no_reader_is_in_was_passed_to_them():
    text = "a = MatMul(x, table) y = MatMul(a, table)"
    model = model_of(text, weights={"table": np.eye(3, dtype=np.float32)}, x="2, 3")
    model.graph.initializers["table"].name = "encoder.positions.weight"
    for node, scope in zip(model.graph, ("layers.0", "layers.1"), strict=True):
        path = ["", "encoder", f"encoder.{scope}", "call"]
        node.metadata_props["pkg.torch.onnx.name_scopes"] = repr(path)
    assert not untie_weights(model, Account())


def test_a_matrix_folded_for_each_call_of_a_module_stays_one():
    def untied(second: str, bias: str = "shift") -> bool:
        text = """a = MatMul(x, matrix) copy = Identity(matrix) b = Relu(a)
            c = MatMul(b, copy) y = Add(c, shift)"""
        matrix, shift = np.eye(3, dtype=np.float32), np.float32([1, 2, 3])
        model = model_of(text, weights={"matrix": matrix, "shift": shift}, x="2, 3")
        model.graph.initializers["shift"].name = bias
        model.graph.initializers["matrix"].name = "onnx::MatMul_41"
        names = ("/layer/fc/MatMul", "", "/layer/Relu", f"{second}/MatMul", "")
        for node, name in zip(model.graph, names, strict=True):
            node.name = name
        model.graph[1].outputs[0].name = "onnx::MatMul_42"
        return untie_weights(model, Account())

    assert not untied("/layer/fc_1")
    assert not untied("/layer_1/fc_1")
    assert untied("/layer/other")
    assert untied("/layer/fc_first")
    assert not untied("/layer/fc_1", "layer.fc.bias")
    assert untied("/layer/fc_1", "layer.fc_1.bias")
    assert untied("/layer_1/fc", "layer_1.norm.bias")


def _unscoped(matrix: np.ndarray, bias: np.ndarray) -> ir.Model:
    """Two steps that read a matrix and its bias, the second one copies of both."""
    text = """c = Identity(b) k = Identity(w) a = MatMul(x, w) d = Add(a, b)
        e = Relu(d) f = MatMul(e, k) y = Add(f, c)"""
    model = model_of(text, weights={"w": matrix, "b": bias}, x="2, 3")
    model.graph.initializers["w"].name = "onnx::MatMul_3"
    model.graph.initializers["b"].name = "onnx::Add_4"
    for node, name in zip(model.graph, ("onnx::Add_8", "onnx::MatMul_7"), strict=False):
        node.outputs[0].name = name
    return model


@pytest.mark.parametrize("fresh", [False, True], ids=["trained", "fresh"])
def test_copies_outside_of_all_modules_are_one_layers_by_its_matrix(fresh: bool):
    """Keras reads a cell's weights again at each step, and has no scopes."""
    matrix = RANDOM.normal(size=(3, 3)).astype(np.float32)
    bias = np.zeros(3, np.float32) if fresh else np.float32([1, 2, 3])
    model = _unscoped(matrix, bias)
    assert untie_weights(model, Account())
    assert [n.op_type for n in model.graph] == [
        "MatMul",
        "Add",
        "Relu",
        "MatMul",
        "Add",
    ]
    assert {n.inputs[1].name for n in model.graph if len(n.inputs) > 1} == {
        "onnx::MatMul_3",
        "onnx::Add_4",
    }


def test_copies_outside_of_all_modules_are_untied_where_matrices_are_fresh():
    model = _unscoped(np.ones((3, 3), np.float32), np.float32([1, 2, 3]))
    assert untie_weights(model, Account())
    found = [node.inputs[1].name for node in model.graph if len(node.inputs) > 1]
    assert len(set(found)) == 4


def test_fresh_weights_of_any_modules_are_untied_by_scope():
    text = """a = Mul(x, ones) b = Add(a, zeros) c = Add(b, zeros) d = Mul(c, uneven)
        e = Mul(d, uneven) y = Add(e, zeros)"""
    weights = {name: np.float32([1, 1, 1]) for name in ("ones", "zeros")}
    weights |= {"zeros": np.float32([0, 0, 0]), "uneven": np.float32([1, 2, 1])}
    model = model_of(text, weights=weights, x="2, 3")
    for name, own in (
        ("ones", "norm.weight"),
        ("zeros", "norm.bias"),
        ("uneven", "scale.weight"),
    ):
        model.graph.initializers[name].name = own
    scopes = ["norm", "norm", "block.fc", "scale", "other", "head"]
    for node, scope in zip(model.graph, scopes, strict=True):
        path = ["", scope.split(".")[0], scope, "call"]
        node.metadata_props["pkg.torch.onnx.name_scopes"] = repr(path)
    feeds = {"x": RANDOM.normal(size=(2, 3)).astype(np.float32)}
    before = run(model, feeds)
    assert untie_weights(model, Account())
    assert not untie_weights(model, Account())
    assert [node.inputs[1].name for node in model.graph] == [
        *("norm.weight", "norm.bias", "block.fc.bias"),
        *("scale.weight", "scale.weight", "head.bias"),
    ]
    np.testing.assert_array_equal(run(model, feeds)[0], before[0])


def test_transposed_weights_of_the_older_exporter_are_untied_by_node_names():
    text = "a = MatMul(x, shared) b = Relu(a) y = MatMul(b, shared)"
    model = model_of(text, weights={"shared": np.eye(3, dtype=np.float32)}, x="2, 3")
    model.graph.initializers["shared"].name = "onnx::MatMul_41"
    for node, name in zip(
        model.graph, ("/l/l.0/fc/M", "/Relu", "/l/l.1/fc/M"), strict=True
    ):
        node.name = name
    assert untie_weights(model, Account())
    found = [node.inputs[1].name for node in model.graph if len(node.inputs) > 1]
    assert found == ["onnx::MatMul_41", "onnx::MatMul_1000000"]


@pytest.mark.parametrize("name", ["l.0.fc.weight", "onnx::Gemm_41"])
def test_weights_that_a_simplifier_merged_are_of_the_layers_whose_biases_are_beside(
    name: str,
):
    text = "a = Gemm(x, shared, b0) b = MatMul(a, shared) y = Add(b, b1)"
    weights = {"shared": np.eye(3, dtype=np.float32)}
    weights |= {f"b{i}": np.full(3, i + 2, np.float32) for i in range(2)}
    model = model_of(text, weights=weights, x="2, 3")
    values = model.graph.initializers
    values["shared"].name = name
    for i in range(2):
        values[f"b{i}"].name = f"l.{i}.fc.bias"
    assert untie_weights(model, Account())
    assert not untie_weights(model, Account())
    other = "l.1.fc.weight" if name.startswith("l") else "onnx::Gemm_1000000"
    assert [node.inputs[1].name for node in model.graph][:2] == [name, other]


def test_weights_beside_biases_of_two_kinds_stay_tied():
    """An output layer with a bias of its own that is tied to another layer."""
    text = "a = Gemm(x, shared, b0) y = Gemm(a, shared, b1)"
    weights = {"shared": np.eye(3, dtype=np.float32)}
    weights |= {f"b{i}": np.full(3, i + 2, np.float32) for i in range(2)}
    model = model_of(text, weights=weights, x="2, 3")
    values = model.graph.initializers
    values["shared"].name = "embed.weight"
    values["b0"].name, values["b1"].name = "embed.bias", "head.decoder.bias"
    assert not untie_weights(model, Account())


def test_a_value_that_onnx_ir_names_is_none_of_the_weights():
    """PyTorch's exporter calls weights `val_0`, as onnx_ir calls what has no name."""
    weight = ir.Value(name="val_0", const_value=ir.tensor(np.ones(2, np.float32)))
    x = ir.Value(name="x", shape=ir.Shape([2]), type=ir.TensorType(ir.DataType.FLOAT))
    first = ir.node("Add", [x, weight], outputs=[ir.Value(name="val_0")])
    second = ir.node("Exp", [first.outputs[0]], outputs=[ir.Value(name="y")])
    graph = ir.Graph([x], second.outputs, nodes=[first, second], initializers=[weight])
    separate_names(ir.Model(graph, ir_version=9))
    assert first.outputs[0].name == "val_0_1"
    assert weight.name == "val_0"
