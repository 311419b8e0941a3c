"""TensorFlow's scopes: names, blocks in rows of layers, and whole files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from burnish.codegen.pipeline import Options, generate
from burnish.codegen.tensorflow.blocks import blocks_of
from burnish.codegen.tensorflow.names import (
    is_own,
    is_tensorflows,
    path_of,
    without_calls,
)
from burnish.codegen.tensorflow.tree import Item, shaped
from tests.harness.both_forms import both_forms, same_numbers


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("model/dense_1/MatMul", "model.dense_1"),
        ("model/dense/MatMul/ReadVariableOp:0", "model.dense"),
        ("StatefulPartitionedCall/model/dense/MatMul__12", "model.dense"),
        ("PartitionedCall_1/Add", ""),
        ("bert/layer_._0/LayerNorm/batchnorm/mul_1", "bert.layer_0.LayerNorm"),
        ("net/dense/Tensordot/GatherV2", "net.dense"),
        ("net/conv1d/conv1d/ExpandDims_1/ReadVariableOp:0", "net.conv1d"),
        ("separable_conv2d_1/separable_conv2d/depthwise", "separable_conv2d_1"),
        ("net/conv1/Conv2D_weights_fused_bn", "net.conv1"),
        ("net/bn/FusedBatchNormV3;net/relu/Relu;net/conv/Conv2D", "net.conv"),
        ("net/a.b/Relu", "net.a_b"),
        ("bert/pooler/dense/kernel/read__12", "bert.pooler.dense"),
        ("Conv__889", None),
    ],
)
def test_a_name_says_its_scopes(name, path):
    found = path_of(name)
    assert (None if found is None else ".".join(found)) == path


def test_what_a_converter_made_is_no_authors():
    assert is_own("net/dense/MatMul")
    assert not is_own("net/dense/MatMul__12")
    assert not is_own("Conv__12")


@pytest.mark.parametrize(
    ("producer", "names", "is_theirs"),
    [
        ("tf2onnx", [], True),
        ("", ["a/b/MatMul", "a/b/BiasAdd", "a/c/Conv2D", "a/c/Relu__3"], True),
        ("", ["a/b/x", "a/b/y", "a/c/z", "a/c/u"], False),
        ("", ["/a/b/MatMul", "a/b/BiasAdd", "a/c/Conv2D"], False),
        ("pytorch", ["conv1", "conv2", "fc", "a/b/MatMul"], False),
    ],
)
def test_a_file_is_tensorflows_by_its_writer_or_its_names(producer, names, is_theirs):
    assert is_tensorflows(producer, names) is is_theirs


@pytest.mark.parametrize(
    ("paths", "bare"),
    [
        ({"m_1.conv_1": 1, "m_1.conv_1_2": 2}, ["m.conv", "m.conv_1"]),
        ({"m_1.fc_1": 1, "m_1.fc_2": 1}, ["m.fc", "m.fc"]),  # one layer, called twice
        ({"m_1.fc_1": 1, "m_1.fc_2": 2}, ["m.fc_1", "m.fc_2"]),
        ({"m.layer_0": 1, "m.layer_1": 2}, ["m.layer_0", "m.layer_1"]),
    ],
)
def test_keras_counts_of_calls_are_no_names(paths, bare):
    given = {tuple(path.split(".")): {weight} for path, weight in paths.items()}
    assert [".".join(path) for path in without_calls(given).values()] == bare


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (
            "c2_block1_1_conv c2_block1_2_conv c2_block2_1_conv c2_block2_2_conv",
            "c2_block1.conv1 c2_block1.conv2 c2_block2.conv1 c2_block2.conv2",
        ),
        (
            "ex_dw ex_project ex_1_expand ex_1_dw ex_1_project"
            " ex_2_expand ex_2_dw ex_2_project",
            "ex.dw ex.project ex_1.expand ex_1.dw ex_1.project"
            " ex_2.expand ex_2.dw ex_2.project",
        ),
        (
            "block2a_dw block2a_project block2b_dw block2b_project top_conv",
            "block2a.dw block2a.project block2b.dw block2b.project -",
        ),
        (  # the number is behind the part
            "conv1 conv_dw_1 conv_pw_1 conv_dw_2 conv_pw_2 conv_preds",
            "- conv_1.dw conv_1.pw conv_2.dw conv_2.pw -",
        ),
        # one layer of each number is no block, and blocks that interleave are none
        ("conv1_a conv2_a conv3_a", "- - -"),
        ("s1_a s2_a s3_a s1_b s2_b s3_b s1_c s2_c s3_c", "- - - - - - - - -"),
        ("conv2d conv2d_1 dense", "- - -"),
    ],
)
def test_layers_that_differ_in_a_number_are_blocks(names, found):
    made = blocks_of(dict.fromkeys(names.split(), True))
    parts = [".".join(made[name]) if name in made else "-" for name in names.split()]
    assert parts == found.split()


def test_layers_without_weights_join_their_block():
    names = {
        f"block{n}_{part}": part != "relu"
        for n in (1, 2)
        for part in ("a", "b", "relu")
    }
    assert blocks_of(names)["block2_relu"] == ("block2", "relu")


@pytest.mark.parametrize(
    ("paths", "modules"),
    [
        (
            "enc.layer_0.q enc.layer_0.k enc.layer_1.q enc.layer_1.k head",
            "enc.layer.0:Layer.q enc.layer.0:Layer.k"
            " enc.layer.1:Layer.q enc.layer.1:Layer.k head",
        ),
        (  # numbers of the whole model begin anew
            "block.dense block.dense_1 block_1.dense_2 block_1.dense_3 dense_4",
            "block.0:Block.dense block.0:Block.dense_1"
            " block.1:Block.dense block.1:Block.dense_1 dense_4",
        ),
        (  # a list of lists
            "b1.unit_1.v1.x b1.unit_1.v1.y b1.unit_2.v1.x b1.unit_2.v1.y"
            " b2.unit_1.v1.x b2.unit_1.v1.y b2.unit_2.v1.x b2.unit_2.v1.y",
            "b.0:B.0:V1.x b.0:B.0:V1.y b.0:B.1:V1.x b.0:B.1:V1.y"
            " b.1:B.0:V1.x b.1:B.0:V1.y b.1:B.1:V1.x b.1:B.1:V1.y",
        ),
        (  # scopes that do the same are of one class, whatever their names
            "query_tower.a query_tower.b item_tower.a item_tower.b",
            "query_tower:Tower.a query_tower:Tower.b"
            " item_tower:Tower.a item_tower:Tower.b",
        ),
        ("attention.self.q attention.self.k", "attention.self:SelfAttention.q"
         " attention.self:SelfAttention.k"),
        ("pool2_bn pool2_conv x pool3_bn pool3_conv", "pool2:Pool.bn pool2:Pool.conv"
         " x pool3:Pool.bn pool3:Pool.conv"),
    ],
)  # fmt: skip
def test_paths_are_modules(paths, modules):
    items = [Item(tuple(path.split(".")), "MatMul", True) for path in paths.split()]
    shaped(items)
    assert [
        ".".join(f"{n.name}:{n.kind}" if n.kind else n.name for n in item.levels)
        for item in items
    ] == modules.split()


# --- whole files ---


class _File:
    """Nodes and weights as tf2onnx names them."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.rng = np.random.default_rng(0)

    def __call__(self, kind: str, name: str, *inputs: str, **attributes: Any) -> str:
        made = helper.make_node(kind, inputs, [f"{name}:0"], name, **attributes)
        self.nodes.append(made)
        return f"{name}:0"

    def weight(self, name: str, *shape: int) -> str:
        values = self.rng.normal(size=shape).astype(np.float32) / 4
        self.weights.append(numpy_helper.from_array(values, f"{name}:0"))
        return f"{name}:0"

    def conv(self, name: str, x: str, before: int, after: int, kernel: int) -> str:
        """A convolution that its batch norm was folded into: both nodes are counted."""
        weight = self.weight(
            f"{name}/convolution/merged_input", after, before, kernel, kernel
        )
        bias = self.weight(f"{name.replace('conv', 'bn')}/batchnorm/sub", after)
        pads = [kernel // 2] * 4
        return self("Conv", f"Conv__{len(self.nodes)}", x, weight, bias, pads=pads)

    def dense(self, name: str, x: str, before: int, after: int) -> str:
        weight = self.weight(f"{name}/MatMul/ReadVariableOp", before, after)
        bias = self.weight(f"{name}/BiasAdd/ReadVariableOp", after)
        return self(
            "Add", f"{name}/BiasAdd", self("MatMul", f"{name}/MatMul", x, weight), bias
        )

    def save(self, path: Path, y: str, shape: list[Any]) -> Path:
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        self.nodes.append(helper.make_node("Identity", [y], ["y"], "Identity"))
        ends = helper.make_empty_tensor_value_info("y")
        graph = helper.make_graph(self.nodes, "g", [x], [ends], self.weights)
        opsets = [helper.make_opsetid("", 17)]
        model = helper.make_model(
            graph, opset_imports=opsets, ir_version=8, producer_name="tf2onnx"
        )
        onnx.save(onnx.shape_inference.infer_shapes(model), path)
        return path


def keras_resnet(path: Path) -> Path:
    """Keras' names: one row of layers, a count behind each, sums counted apart."""
    f = _File()
    x = f("Transpose", "net_1/conv1_conv_1/convolution__7", "x", perm=[0, 3, 1, 2])
    x = f("Relu", "net_1/conv1_relu_1/Relu", f.conv("net_1/conv1_conv_1", x, 3, 8, 3))
    for n in (1, 2, 3):
        stem = f"net_1/conv2_block{n}"
        y = f.conv(f"{stem}_1_conv_1", x, 8, 4, 1)
        y = f("Relu", f"{stem}_1_relu_1/Relu", y)
        y = f.conv(f"{stem}_2_conv_1", y, 4, 8, 3)
        y = f("Add", f"net_1/add_{n}/Add", x, y)
        x = f("Relu", f"net_1/activation_{n}_1/Relu", y)
    x = f("GlobalAveragePool", "net_1/avg_pool_1/Mean", x)
    x = f("Flatten", "Flatten__88", x)
    return f.save(path, f.dense("net_1/predictions_1", x, 8, 5), ["batch", 6, 6, 3])


def google_bert(path: Path) -> Path:
    """TensorFlow 1's names, as those of Google's BERT."""
    f = _File()
    x = "x"
    for n in range(3):
        stem = f"bert/encoder/layer_{n}"
        y = f.dense(f"{stem}/attention/self/value", x, 8, 8)
        x = f(
            "Add",
            f"{stem}/attention/output/add",
            f.dense(f"{stem}/attention/output/dense", y, 8, 8),
            x,
        )
        y = f.dense(f"{stem}/intermediate/dense", x, 8, 16)
        y = f("Tanh", f"{stem}/intermediate/Tanh", y)
        x = f("Add", f"{stem}/output/add", f.dense(f"{stem}/output/dense", y, 16, 8), x)
    x = f("Tanh", "bert/pooler/Tanh", f.dense("bert/pooler/dense", x, 8, 8))
    return f.save(path, x, ["batch", 7, 8])


def _whole(path: Path) -> str:
    return generate(path, Options(name="whole")).text


def test_a_row_of_layers_is_blocks_in_a_list(tmp_path):
    path = keras_resnet(tmp_path / "net.onnx")
    text = _whole(path)
    assert "self.conv1_conv = nn.Conv2d(3, 8, 3, padding=1)" in text
    assert "self.conv2_block = [Block() for _ in range(3)]" in text
    assert "self.predictions = nn.Linear(8, 5)" in text
    assert "x = x + self.conv2(ops.relu(self.conv1(x)))" in text
    x = np.random.default_rng(1).normal(size=(2, 6, 6, 3)).astype(np.float32)
    same_numbers(both_forms(path, tmp_path), [x])


def test_blocks_have_weights_of_their_own_that_an_exporter_merged(tmp_path):
    f, x = _File(), "x"
    fresh = numpy_helper.from_array(np.ones(8, np.float32), "net/b_2/scale/x:0")
    f.weights.append(fresh)
    for n in range(3):
        y = f.dense(f"net/b_{n}/first", x, 8, 8)
        y = f("Tanh", f"net/b_{n}/first/Tanh", y)
        y = f("Mul", f"net/b_{n}/scale/mul", y, "net/b_2/scale/x:0")
        y = f("Relu", f"net/b_{n}/Relu", y)
        x = f("Add", f"net/b_{n}/add", x, f.dense(f"net/b_{n}/second", y, 8, 8))
    path = f.save(tmp_path / "net.onnx", f.dense("net/head", x, 8, 2), ["batch", 8])
    assert "for _ in range(" in _whole(path)
    models = both_forms(path, tmp_path)
    own = [key for key in models[0].state_dict() if "scale" in key]
    assert len(own) == 3, own
    x = np.random.default_rng(1).normal(size=(2, 8)).astype(np.float32)
    same_numbers(models, [x])


def test_scopes_of_variables_are_classes(tmp_path):
    path = google_bert(tmp_path / "bert.onnx")
    text = _whole(path)
    for line in (
        "self.attention = Attention(",
        "self.intermediate = Intermediate(",
        "self.output = LayerOutput(",
        "self.encoder = Encoder(",
        "self.pooler = Pooler(",
        "for _ in range(",
    ):
        assert line in text, text
    models = both_forms(path, tmp_path)
    assert "encoder.layer.2.attention.output.dense.weight" in models[0].state_dict()
    x = np.random.default_rng(1).normal(size=(2, 7, 8)).astype(np.float32)
    same_numbers(models, [x])


def test_a_file_without_weights_has_no_scopes(tmp_path):
    f = _File()
    path = f.save(tmp_path / "net.onnx", f("Relu", "net/a/Relu", "x"), ["batch", 3])
    assert "return ops.relu(x)" in _whole(path)
    items = [Item(("a", "b"), "Relu", False)]
    shaped(items)
    assert items[0].levels == ()


@pytest.mark.parametrize("opposite", [True, False])
def test_an_erfc_that_the_exporter_left_is_onnxs_erf(opposite, tmp_path):
    f = _File()
    f.weights += [
        numpy_helper.from_array(np.array(number, np.float32), name)
        for name, number in (("half", 0.5), ("c__1", 0.5**0.5))
    ]
    x = f("Neg", "net/Gelu/Neg", "x") if opposite else "x"
    e = f("Erfc", "net/Gelu/Erfc", f("Mul", "net/Gelu/mul_1", x, "c__1"))
    y = f("Mul", "net/Gelu/mul_2", f("Mul", "net/Gelu/mul", "half", "x"), e)
    model = both_forms(f.save(tmp_path / "net.onnx", y, ["batch", 3]), tmp_path)[0]
    x = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)
    phi = np.array([[math.erf(n / 2**0.5) for n in row] for row in x])
    wanted = x * (1 + phi if opposite else 1 - phi) / 2
    np.testing.assert_allclose(np.asarray(model(x)), wanted, 1e-4, 1e-6)
    text = _whole(tmp_path / "net.onnx")
    assert ("return ops.gelu(x)" in text) is opposite, text
