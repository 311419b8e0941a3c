"""Files without names: what they repeat becomes classes, with the same numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from burnish import Tensor
from burnish.codegen.pipeline import Options, generate, write
from burnish.optim import Adam
from tests.harness.counted import counted
from tests.harness.imported import imported, load_class
from tests.harness.source import check_source, floats, graph
from tests.harness.strip import stripped

DIM, HEADS, DEPTH, VOCAB = 16, 4, 12, 23


class Graph:
    """Nodes and weights as they are added; what is not named is numbered."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.rng = np.random.default_rng(0)

    def __call__(self, kind: str, *inputs: str, **attributes: Any) -> str:
        output = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def weight(self, *shape: int) -> str:
        values = self.rng.normal(size=shape).astype(np.float32) / 4
        return self.constant(values)

    def constant(self, values: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def linear(self, x: str, before: int, after: int) -> str:
        y = self("MatMul", x, self.weight(before, after))
        return self("Add", y, self.weight(after))

    def norm(self, x: str) -> str:
        return self("LayerNormalization", x, self.weight(DIM), self.weight(DIM))

    def model(self, x: onnx.ValueInfoProto, y: str, shape: list[Any]) -> Any:
        self.nodes.append(helper.make_node("Identity", [y], ["logits"]))
        made = helper.make_tensor_value_info("logits", TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, "g", [x], [made], self.weights)
        opsets = [helper.make_opsetid("", 20)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def encoder(depth: int = DEPTH) -> onnx.ModelProto:
    """Token ids to logits through layers of attention and an MLP."""
    g = Graph()
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", 5])
    x = g("Gather", g.weight(VOCAB, DIM), "ids")
    shape = g.constant(np.array([0, 5, HEADS, DIM // HEADS]))
    back = g.constant(np.array([0, 5, DIM]))
    scale = g.constant(np.float32(0.5))
    for _ in range(depth):
        y = g.norm(x)
        q, k, v = (g("Reshape", g.linear(y, DIM, DIM), shape) for _ in range(3))
        q, v = (g("Transpose", z, perm=[0, 2, 1, 3]) for z in (q, v))
        scores = g("MatMul", q, g("Transpose", k, perm=[0, 2, 3, 1]))
        weights = g("Softmax", g("Mul", scores, scale), axis=-1)
        y = g("Transpose", g("MatMul", weights, v), perm=[0, 2, 1, 3])
        x = g("Add", x, g.linear(g("Reshape", y, back), DIM, DIM))
        y = g("Gelu", g.linear(g.norm(x), DIM, 4 * DIM))
        x = g("Add", x, g.linear(y, 4 * DIM, DIM))
    return g.model(ids, g.linear(g.norm(x), DIM, 3), ["batch", 5, 3])


def pyramid() -> onnx.ModelProto:
    """Residual blocks of two convolutions, of which some change the size."""
    g = Graph()
    images = helper.make_tensor_value_info(
        "images", TensorProto.FLOAT, ["batch", 3, 16, 16]
    )

    def conv(x: str, before: int, after: int, kernel: int, stride: int = 1) -> str:
        pad = kernel // 2
        weight = g.weight(after, before, kernel, kernel)
        return g("Conv", x, weight, strides=[stride] * 2, pads=[pad] * 4)

    x, width = g("Relu", conv("images", 3, 8, 3)), 8
    for after in (8, 16, 32):
        for stride in (1 if after == 8 else 2, 1):
            y = conv(g("Relu", conv(x, width, after, 3, stride)), after, after, 3)
            short = conv(x, width, after, 1, 2) if stride == 2 else x
            x, width = g("Relu", g("Add", y, short)), after
    pooled = g("Flatten", g("GlobalAveragePool", x))
    return g.model(images, g.linear(pooled, 32, 10), ["batch", 10])


def conv(
    g: Graph,
    x: str,
    before: int,
    after: int,
    kernel: int,
    *,
    groups: int = 1,
    **more: Any,
) -> str:
    """A convolution and its batch norm."""
    weight = g.weight(after, before // groups, kernel, kernel)
    y = g("Conv", x, weight, pads=[kernel // 2] * 4, group=groups, **more)
    spread = g.constant(g.rng.uniform(0.5, 1.5, after).astype(np.float32))
    shift = (g.weight(after), g.weight(after), g.weight(after))
    return g("BatchNormalization", y, *shift, spread)


def mobile() -> onnx.ModelProto:
    """Inverted residuals, with squeeze-and-excitation in some, in three stages."""
    g = Graph()
    images = helper.make_tensor_value_info(
        "images", TensorProto.FLOAT, ["batch", 3, 16, 16]
    )
    x, width = g("Relu", conv(g, "images", 3, 8, 3)), 8
    for after, excites in ((8, False), (12, True), (16, True)):
        for stride in (1 if after == 8 else 2, 1, 1):
            wide = 2 * width
            y = g("Relu", conv(g, x, width, wide, 1))
            y = g("Relu", conv(g, y, wide, wide, 3, groups=wide, strides=[stride] * 2))
            if excites:
                z = g("Conv", g("GlobalAveragePool", y), g.weight(4, wide, 1, 1))
                z = g("Conv", g("Relu", z), g.weight(wide, 4, 1, 1))
                y = g("Mul", y, g("Sigmoid", z))
            y = conv(g, y, wide, after, 1)
            x, width = (g("Add", x, y) if width == after else y), after
    pooled = g("Flatten", g("GlobalAveragePool", x))
    return g.model(images, g.linear(pooled, width, 10), ["batch", 10])


def branches() -> onnx.ModelProto:
    """Two branches of two blocks each, side by side, and convolutions around them."""
    g = Graph()
    images = helper.make_tensor_value_info(
        "images", TensorProto.FLOAT, ["batch", 3, 16, 16]
    )
    x = g("Relu", conv(g, "images", 3, 8, 3))
    ends = []
    for start in (x, g("MaxPool", x, kernel_shape=[3, 3], pads=[1] * 4)):
        y = start
        for _ in range(2):
            inner = g("Relu", conv(g, g("Relu", conv(g, y, 8, 4, 1)), 4, 8, 3))
            y = g("Add", y, inner)
        ends.append(g("Relu", conv(g, y, 8, 8, 5)))
    x = g("Concat", *ends, axis=1)
    x = g("Relu", conv(g, g("Relu", conv(g, x, 16, 8, 3)), 8, 8, 3))
    pooled = g("Flatten", g("GlobalAveragePool", x))
    return g.model(images, g.linear(pooled, 8, 10), ["batch", 10])


def text_of(model: onnx.ModelProto, folder: Path, **options: Any) -> str:
    path = folder / "model.onnx"
    onnx.save(model, path)
    return generate(path, Options(name="generated", **options)).text


def classes_of(text: str) -> list[str]:
    return re.findall(r"^class (\w+)", text, re.MULTILINE)


def test_a_stripped_encoder_is_one_layer_class_and_a_loop(tmp_path):
    text = text_of(stripped(encoder()), tmp_path)
    assert classes_of(text) == ["MLP", "EncoderLayer", "Model"]
    assert "nn.MultiheadAttention(" in text
    assert "for _ in range(depth)]" in text
    assert "        for layer in self.layers:\n            x = layer(x)\n" in text
    for name in ("attention", "linear1", "norm2", "head"):
        assert f"self.{name} = " in text
    arguments = f"dim={DIM}, depth={DEPTH}, heads={HEADS}, hidden={4 * DIM}"
    assert f"__init__(self, {arguments}, vocab={VOCAB}, classes=3):" in text


def test_blocks_that_differ_in_sizes_and_a_shortcut_are_one_class(tmp_path):
    text = text_of(stripped(pyramid()), tmp_path)
    assert classes_of(text) == ["BasicBlock", "Model"]
    assert "downsample=True" in text
    assert "self.stage3 = nn.Sequential(" in text


def test_inverted_residuals_are_one_class_with_and_without_a_sum(tmp_path):
    text = text_of(stripped(mobile()), tmp_path)
    found = classes_of(text)
    assert found.count("InvertedResidual") == 1
    assert "SqueezeExcite" in found
    assert "self.residual = " in text
    assert "self.se = SqueezeExcite(" in text
    assert "self.conv9" not in text


def test_branches_side_by_side_have_modules_of_their_own(tmp_path):
    text = text_of(stripped(branches()), tmp_path)
    assert set(classes_of(text)) == {"BasicBlock", "ConvBNReLU", "Model"}
    assert text.count(" BasicBlock(") + text.count("[BasicBlock(") >= 2
    assert "self.conv1 = ConvBNReLU(3, 8, 3)" in text


def test_a_product_with_what_is_not_pooled_is_no_excitation(tmp_path):
    model = mobile()
    pools = [n for n in model.graph.node if n.op_type == "GlobalAveragePool"]
    for node in pools[:-1]:
        node.op_type = "Identity"
    assert "SqueezeExcite" not in classes_of(text_of(stripped(model), tmp_path))


def test_few_convolutions_with_norms_have_no_class(tmp_path):
    g = Graph()
    images = helper.make_tensor_value_info(
        "images", TensorProto.FLOAT, ["batch", 3, 16, 16]
    )
    x = g("Relu", conv(g, "images", 3, 8, 3))
    x = g("Relu", conv(g, g("Relu", conv(g, x, 8, 8, 5)), 8, 4, 3))
    text = text_of(g.model(images, x, ["batch", 4, 16, 16]), tmp_path)
    assert classes_of(text) == ["Model"]
    assert "self.bn3 = " in text


def test_one_name_that_a_simplifier_left_is_no_structure(tmp_path):
    model = stripped(encoder())
    for tensor in model.graph.initializer:
        if tuple(tensor.dims) == (DIM, 3):
            left, tensor.name = tensor.name, "head.weight"
    for node in model.graph.node:
        node.input[:] = ["head.weight" if i == left else i for i in node.input]
    expected = ["MLP", "EncoderLayer", "Model"]
    assert classes_of(text_of(model, tmp_path)) == expected


def short() -> onnx.ModelProto:
    """The encoder with as many layers as a repeat needs."""
    return encoder(3)


@pytest.mark.parametrize("build", [short, pyramid, mobile, branches])
def test_names_that_a_framework_counted_are_none(tmp_path, build):
    named = counted(build())
    assert any(t.name.endswith("_7.w_0") for t in named.graph.initializer)
    text = text_of(named, tmp_path)
    bare = text_of(stripped(build()), tmp_path)
    assert text.partition("from burnish")[2] == bare.partition("from burnish")[2]


def test_biases_that_an_exporter_computed_do_not_make_counted_names_an_authors(
    tmp_path,
):
    named = counted(mobile(), bias="b_0")
    renamed = {
        t.name: f"p2o.pd_op.reshape.{i}.0"
        for i, t in enumerate(named.graph.initializer)
        if t.name.endswith(("w_1", "b_0"))
    }
    for tensor in named.graph.initializer:
        tensor.name = renamed.get(tensor.name, tensor.name)
    for node in named.graph.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]
    text = text_of(named, tmp_path)
    bare = text_of(stripped(mobile()), tmp_path)
    assert text.partition("from burnish")[2] == bare.partition("from burnish")[2]


@pytest.mark.parametrize("build", [short, pyramid, mobile, branches])
def test_structure_changes_no_number(tmp_path, build):
    model = stripped(build())
    rng = np.random.default_rng(1)
    if build is short:
        given: Any = rng.integers(0, VOCAB, size=(2, 5))
    else:
        given = rng.normal(size=(2, 3, 16, 16)).astype(np.float32)
    found = np.asarray(imported(model, tmp_path)(given))
    path = tmp_path / "flat.onnx"
    onnx.save(model, path)
    source, weights = write(generate(path, Options(flat=True)), tmp_path)
    assert classes_of(source.read_text()) == ["Model"]
    expected = np.asarray(load_class(source).from_file(weights)(given))
    np.testing.assert_array_equal(found, expected)


def test_other_sizes_give_a_model_that_learns(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(stripped(encoder(3)), path)
    source, _ = write(generate(path), tmp_path)
    small = load_class(source)(dim=8, depth=2, heads=2, hidden=12, vocab=7, classes=4)
    model = small.to("cpu:autodiff")
    ids = Tensor(np.arange(10).reshape(2, 5) % 7, device="cpu:autodiff")
    optimizer, losses = Adam(), []
    for _ in range(8):
        loss = (model(ids) - 1.0).square().mean()
        losses.append(float(loss))
        optimizer.step(1e-2, model, loss.backward())
    assert model(ids).shape == (2, 5, 4)
    assert losses[-1] < losses[0] / 2


def test_the_same_file_gives_the_same_text_and_reasons(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(stripped(encoder(2)), path)
    reports: list[list[str]] = [[], []]
    texts = [generate(path, explain=lines.append).text for lines in reports]
    assert texts[0] == texts[1]
    assert reports[0] == reports[1]
    assert any(line.startswith("structure: layers holds 2") for line in reports[0])
    assert f"argument dim={DIM}" in "\n".join(reports[0])


def test_names_of_the_file_stay_in_branches():
    def branch(model):
        ends = [helper.make_empty_tensor_value_info("h")]
        given = ["x", f"{model}.encoder.0.stem.weight"]
        made = [helper.make_node("Conv", given, ["h"], pads=[1, 1])]
        return helper.make_graph(made, "branch", [], ends)

    weights = {
        f"{model}.encoder.0.stem.weight": floats(4, 3, 3, seed=seed)
        for seed, model in enumerate(("fast", "slow"))
    }
    both = helper.make_node(
        "If", ["c"], ["y"], then_branch=branch("fast"), else_branch=branch("slow")
    )
    inputs = {"c": (TensorProto.BOOL, ()), "x": (2, 3, 8)}
    model = graph([both], weights, **inputs)
    check_source(model, "y = self.stem(x) if c else self.stem2(x)")
