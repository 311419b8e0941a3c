"""Weights that several layers share: one tensor in the file, one parameter."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import onnx
import pytest

from burnish import Tensor
from tests.harness.source import check_source, floats, graph, node, source_of

FLOAT, INT = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
IDS = {"ids": np.array([[0, 4, 2], [3, 3, 1]])}
EMBED = floats(5, 4)


def tied(*head: onnx.NodeProto, **weights: np.ndarray) -> onnx.ModelProto:
    """Ids to logits through the embedding's own weight, turned."""
    nodes = [
        node("Gather", "embed.weight ids", "x", "/embed/Gather"),
        node("Tanh", "x", "t", "/Tanh"),
        *head,
    ]
    held = {"embed.weight": EMBED, **weights}
    return graph(nodes, held, ids=(INT, ("batch", "time")))


PRODUCT = node("MatMul", "t val_7", "y", "/head/MatMul")
TURNED = {"val_7": EMBED.T.copy()}


def test_a_turned_copy_is_the_weight_itself():
    check_source(
        tied(PRODUCT, **TURNED),
        """
        self.embed = nn.Embedding(vocab, 4)
        self.head = nn.Linear(4, vocab, bias=False)
        self.head.weight = self.embed.weight
        """,
        "return self.head(ops.tanh(self.embed(ids)))",
        feeds=IDS,
    )


def test_a_head_with_a_bias_of_its_own_shares_the_weight():
    head = (
        node("MatMul", "t val_7", "h", "/head/MatMul"),
        node("Add", "h head.bias", "y", "/head/Add"),
    )
    check_source(
        tied(*head, **TURNED, **{"head.bias": floats(5)}),
        "self.head = nn.Linear(4, vocab)\nself.head.weight = self.embed.weight",
        feeds=IDS,
    )


@pytest.mark.parametrize(
    "copy",
    [floats(4, 5, seed=1), np.zeros((4, 5), np.float32)],
    ids=["other numbers", "zeros"],
)
def test_what_is_no_copy_is_a_weight_of_its_own(copy):
    text = check_source(tied(PRODUCT, val_7=copy), feeds=IDS)
    assert ".weight =" not in text


def test_a_tied_weight_is_stored_once_and_learns_from_both_uses():
    model = tied(PRODUCT, **TURNED)
    with tempfile.TemporaryDirectory() as folder:
        module = source_of(model, Path(folder))[1].train()
    assert list(dict(module.named_parameters())) == ["embed.weight"]
    assert module.head.weight is module.embed.weight
    found = module(Tensor(IDS["ids"], device=module.device)).sum()
    gradient = np.asarray(module.embed.weight.grad(found.backward()))
    x = EMBED[IDS["ids"]]
    expected = np.broadcast_to(np.tanh(x).sum((0, 1)), (5, 4)).copy()
    through = EMBED.sum(0) * (1 - np.tanh(x) ** 2)
    for word, slope in zip(IDS["ids"].ravel(), through.reshape(-1, 4), strict=True):
        expected[word] += slope
    np.testing.assert_allclose(gradient, expected, 1e-5)


def test_a_layer_that_is_called_again_is_one():
    nodes = [
        node("Gemm", "x a.weight a.bias", "u", "/a/Gemm", transB=1),
        node("Relu", "u", "v", "/Relu"),
        node("Gemm", "v a.weight a.bias", "w", "/a_1/Gemm", transB=1),
        node("Add", "x w", "y", "/Add"),
    ]
    held = {"a.weight": floats(4, 4), "a.bias": floats(4)}
    check_source(
        graph(nodes, held, x=("batch", 4)),
        """
        self.a = nn.Linear(4, 4)
        """,
        "return x + self.a(ops.relu(self.a(x)))",
    )


def test_layers_that_share_one_of_their_weights_are_two():
    nodes = [
        node("Gemm", "x a.weight a.bias", "u", "/a/Gemm", transB=1),
        node("Gemm", "u a.weight b.bias", "y", "/b/Gemm", transB=1),
    ]
    held = {"a.weight": floats(4, 4), "a.bias": floats(4), "b.bias": floats(4)}
    check_source(
        graph(nodes, held, x=("batch", 4)),
        """
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)
        self.b.weight = self.a.weight
        """,
    )


def test_a_part_of_a_list_that_is_called_in_two_ways_is_two_modules():
    def block(number: int, x: str, y: str, end: str = "Relu"):
        at, held = f"/bs/bs.{number}", f"bs.{number}"
        u, v, w = (f"{y}{letter}" for letter in "uvw")
        return [
            node("Gemm", f"{x} {held}.a.weight", u, f"{at}/a/Gemm", transB=1),
            node("Tanh", u, v, f"{at}/Tanh"),
            node("Gemm", f"{v} {held}.b.weight", w, f"{at}/b/Gemm", transB=1),
            node(end, w, y, f"{at}/{end}"),
        ]

    nodes = [
        *block(0, "x", "p"),
        *block(1, "p", "q"),
        node("Gemm", "q m.weight", "r", "/m/Gemm", transB=1),
        *block(1, "r", "y", "Neg"),
    ]
    held = {
        f"bs.{number}.{name}.weight": floats(4, 4, seed=3 * number + seed)
        for number in range(2)
        for seed, name in enumerate("ab")
    }
    check_source(
        graph(nodes, held | {"m.weight": floats(4, 4, seed=7)}, x=("batch", 4)),
        "self.bs2.a.weight = self.bs[1].a.weight",
    )


@pytest.mark.parametrize(
    "other",
    [
        node("Add", "u a.weight", "y"),
        node("Gemm", "u a.weight", "y"),
        node("Gemm", "u a.weight", "y", alpha=0.5, transB=1),
    ],
    ids=["a summand", "turned", "scaled"],
)
def test_what_layers_cannot_share_is_a_parameter(other):
    nodes = [node("Gemm", "x a.weight", "u", transB=1), other]
    text = check_source(
        graph(nodes, {"a.weight": floats(4, 4)}, x=(4, 4)),
        "self.weight = nn.Param(nn.init.normal(0.02), (4, 4))",
    )
    assert "nn.Linear" not in text


def test_modules_share_where_they_meet():
    nodes = [
        node("Gather", "shared.weight ids", "u", "/encoder/embed_tokens/Gather"),
        node("Gemm", "u1 e.weight", "e", "/encoder/fc/Gemm", transB=1),
        node("Gather", "shared.weight ids", "v", "/decoder/embed_tokens/Gather"),
        node("Gemm", "v1 d.weight", "d", "/decoder/fc/Gemm", transB=1),
        node("Add", "e d", "y", "/Add"),
    ]
    nodes.insert(1, node("ReduceSum", "u one", "u1", "/encoder/Sum", keepdims=0))
    nodes.insert(4, node("ReduceSum", "v one", "v1", "/decoder/Sum", keepdims=0))
    held = {
        "shared.weight": EMBED,
        "e.weight": floats(4, 4, seed=1),
        "d.weight": floats(4, 4, seed=2),
        "one": np.array([1]),
    }
    check_source(
        graph(nodes, held, ids=(INT, ("batch", "time"))),
        "self.decoder.embed_tokens.weight = self.encoder.embed_tokens.weight",
        feeds=IDS,
    )


def test_a_weight_that_a_class_shares_inside_is_one_with_another_class_too():
    nodes, held, x = [], {"shared.bias": floats(4)}, "x"
    for path in ("first.fc", "second.fc1", "second.fc2"):
        module, scope = path.partition(".")[0], "/" + path.replace(".", "/")
        held[f"{path}.weight"] = floats(4, 4)
        nodes += [
            node("MatMul", f"{x} {path}.weight", f"{path}m", f"{scope}/MatMul"),
            node("Add", f"{path}m shared.bias", f"{path}a", f"{scope}/Add"),
            node("Tanh", f"{path}a", f"{path}t", f"/{module}/Tanh"),
        ]
        x = f"{path}t"
    check_source(
        graph([*nodes, node("Neg", x, "y", "/Neg")], held, x=(FLOAT, ("batch", 4))),
        "self.second.fc1.bias = self.first.fc.bias\n"
        "self.second.fc2.bias = self.first.fc.bias",
        feeds={"x": floats(3, 4)},
    )
