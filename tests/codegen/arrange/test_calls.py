"""Modules that are called again are one module; calls in a row are a loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from tests.harness.source import check_source, floats, graph, node
from tests.harness.strip import stripped


def network(*calls: str, again: str = "") -> onnx.ModelProto:
    """Ids through a block of a norm and an MLP under each of these scopes in turn.

    again: what of a call's names has a number: nothing, the module, or also its parts.
    """
    nodes = [node("Gather", "embed.weight ids", "x0", "/embed/Gather")]
    x = "x0"
    for i, scope in enumerate(calls):
        count = f"_{i}" if again and i else ""
        own, part = scope + count, count if again == "parts" else ""
        at = scope if again == "parts" else own
        nodes += [
            node("LayerNormalization", f"{x} g b", f"n{i}", f"{at}/norm{part}/Norm"),
            node("Gemm", f"n{i} w1 b1", f"h{i}", f"{at}/fc1{part}/Gemm", transB=1),
            node("Relu", f"h{i}", f"r{i}", f"{own}/Relu"),
            node("Gemm", f"r{i} w2 b2", f"s{i}", f"{at}/fc2{part}/Gemm", transB=1),
            node("Add", f"{x} s{i}", f"y{i}", f"{own}/Add"),
        ]
        x = f"y{i}"
    nodes.append(node("Gemm", f"{x} head.weight", "y", "/head/Gemm", transB=1))
    held: dict[str, Any] = {
        "embed.weight": floats(7, 4),
        "g": floats(4, seed=1),
        "b": floats(4, seed=2),
        "w1": floats(6, 4, seed=3),
        "b1": floats(6, seed=4),
        "w2": floats(4, 6, seed=5),
        "b2": floats(4, seed=6),
        "head.weight": floats(2, 4, seed=7),
    }
    return graph(nodes, held, ids=(onnx.TensorProto.INT64, ("batch",)))


LOOP = """
x = self.embed(ids)
for _ in range(self.depth):
    x = self.block(x)
return self.head(x)
"""
BLOCK = """
def forward(self, x):
    y = ops.relu(self.fc1(self.norm(x)))
    return x + self.fc2(y)
"""
IDS = {"ids": np.array([0, 6, 3])}


@pytest.mark.parametrize("again", ["", "module", "parts"])
def test_a_block_that_is_called_again_is_a_loop(again):
    text = check_source(
        network(*["/block"] * 5, again=again), LOOP, BLOCK, feeds=IDS, rtol=1e-4
    )
    assert text.count("depth=5") == 1


def test_it_is_one_without_names_too():
    check_source(
        stripped(network(*["/block"] * 100)),
        "for _ in range(self.depth):\n    x = self.block(x)",
        feeds=IDS,
        rtol=1e-3,
    )


def test_flat_code_calls_the_layers_again():
    text = check_source(network("/block", "/block"), feeds=IDS, flat=True, rtol=1e-4)
    assert "for " not in text
    assert text.count("nn.LayerNorm") == 1


def test_two_calls_need_no_loop():
    check_source(
        network("/block", "/block"),
        "x = self.block(self.block(self.embed(ids)))",
        feeds=IDS,
    )


def test_the_same_name_elsewhere_is_another_module():
    """What is called "fc_1" because its author called it that."""
    nodes = [
        node("Gemm", "x fc.weight", "u", "/fc/Gemm", transB=1),
        node("Gemm", "u fc_1.weight", "y", "/fc_1/Gemm", transB=1),
    ]
    held = {"fc.weight": floats(4, 4), "fc_1.weight": floats(4, 4, seed=1)}
    check_source(
        graph(nodes, held, x=("batch", 4)),
        """
        self.fc = nn.Linear(4, 4, bias=False)
        self.fc_1 = nn.Linear(4, 4, bias=False)
        """,
    )


def test_a_list_that_is_called_again():
    nodes, x = [], "x"
    for turn in range(3):
        for number in range(2):
            y = f"v{turn}{number}"
            scope = f"/layers/layers.{number}"
            names = [f"l{number}.weight", f"l{number}.bias"]
            nodes += [
                node("Gemm", f"{x} {' '.join(names)}", f"{y}g", f"{scope}/fc/Gemm"),
                node("Tanh", f"{y}g", f"{y}t", f"{scope}/Tanh"),
                node("Gemm", f"{y}t u{number}", y, f"{scope}/out/Gemm"),
            ]
            x = y
    nodes.append(node("Relu", x, "y", "/Relu"))
    held = {
        f"l{n}.{part}": floats(*shape, seed=n)
        for n in range(2)
        for part, shape in (("weight", (4, 4)), ("bias", (4,)))
    } | {f"u{n}": floats(4, 4, seed=9 + n) for n in range(2)}
    check_source(
        graph(nodes, held, x=("batch", 4)),
        """
        for _ in range(3):
            for layer in self.layers:
                y = layer(y)
        return ops.relu(y)
        """,
    )


def test_a_module_around_reads_what_a_module_owns():
    """A codebook's vectors are looked up, and measured against outside of it."""
    nodes = [
        node("Transpose", "quantizer.codebook.weight", "t", "/quantizer/Transpose"),
        node("MatMul", "x t", "s", "/quantizer/MatMul"),
        node("ArgMax", "s", "i", "/quantizer/ArgMax", axis=-1, keepdims=0),
        node(
            "Gather", "quantizer.codebook.weight i", "q", "/quantizer/codebook/Gather"
        ),
        node("Mul", "q quantizer.scale", "z", "/quantizer/Mul"),
        node("Div", "z quantizer.scale", "y", "/Div"),
    ]
    held = {
        "quantizer.codebook.weight": floats(7, 4),
        "quantizer.scale": floats(4, seed=1),
    }
    check_source(
        graph(nodes, held, x=("batch", 4)),
        """
        x = ops.arg_max(x @ self.codebook.weight.T, axis=-1)
        return self.codebook(x) * self.scale
        """,
        "return self.quantizer(x) / self.quantizer.scale",
    )


def inverted(newer: bool) -> onnx.ModelProto:
    """Three layers, then the inverse of each, which calls the layer's net itself."""
    nodes: list[onnx.NodeProto] = []

    def add(kind: str, inputs: str, output: str, *scope: str, **given: Any) -> None:
        path = "/".join(["", *scope, f"{kind}{len(nodes)}"])
        made = node(kind, inputs, output, "" if newer else path, **given)
        if newer:
            kinds = ["Linear" if s[-1].isdigit() else "Net" for s in scope]
            kinds[:1] = ["Layer"] if scope[0].count(".") == 1 else kinds[:1]
            levels = {
                "name_scopes": ["", *scope, "node"],
                "class_hierarchy": ["Model", *kinds, ""],
            }
            for key, value in levels.items():
                made.metadata_props.add(key=f"pkg.torch.onnx.{key}", value=repr(value))
        nodes.append(made)

    def net(x: str, y: str, number: int, *scope: str, count: str = "") -> None:
        at = f"layers.{number}.net"
        first, last = (
            (f"{at}.0", f"{at}.2") if newer else (f"net.0{count}", f"net.2{count}")
        )
        middle = f"{at}.1" if newer else f"net.1{count}"
        add("Gemm", f"{x} {at}.0.weight {at}.0.bias", f"{y}g", *scope, first, transB=1)
        add("Tanh", f"{y}g", f"{y}t", *scope, middle)
        add("Gemm", f"{y}t {at}.2.weight {at}.2.bias", f"{y}n", *scope, last, transB=1)

    x = "x"
    for n in range(3):
        scope = (f"layers.{n}", f"layers.{n}.net" if newer else "net")
        net(x, f"f{n}", n, *scope)
        add("Mul", f"f{n}n layers.{n}.scale", f"f{n}m", scope[0])
        add("Add", f"{x} f{n}m", f"f{n}", scope[0])
        x = f"f{n}"
    for turn, n in enumerate((2, 1, 0)):
        y = "y" if not n else f"i{n}"
        scope = f"layers.{n}.net" if newer else "net"
        net(x, f"i{n}", n, scope, count=f"_{turn}" if turn else "")
        nodes.append(node("Mul", f"i{n}n layers.{n}.scale", f"i{n}m", f"/Mul_{n}"))
        nodes.append(node("Sub", f"{x} i{n}m", y, f"/Sub_{n}"))
        x = y
    held: dict[str, Any] = {}
    for n in range(3):
        held[f"layers.{n}.scale"] = floats(4, seed=n)
        for part in (0, 2):
            held[f"layers.{n}.net.{part}.weight"] = floats(4, 4, seed=n + part)
            held[f"layers.{n}.net.{part}.bias"] = floats(4, seed=n + part)
    return graph(nodes, held, x=("batch", 4))


@pytest.mark.parametrize("newer", [False, True])
def test_a_part_that_is_called_from_outside_of_its_module(newer):
    text = check_source(
        inverted(newer),
        """
        for layer in self.layers:
            y = layer(y)
        for i in range(3):
            y = y - self.layers[2 - i].net(y) * self.layers[2 - i].scale
        return y
        """,
    )
    assert text.count("nn.Sequential") == 1


def test_a_constant_that_differs_from_call_to_call_is_an_argument():
    """The time of each step, which an exporter has computed."""
    nodes, x = [], "x"
    for turn in range(3):
        y = "y" if turn == 2 else f"y{turn}"
        scope = f"/f_{turn}" if turn else "/f"
        nodes += [
            node("Concat", f"{x} time{turn}", f"c{turn}", f"{scope}/Concat", axis=0),
            node("Gemm", f"c{turn} f.fc.weight", f"g{turn}", f"{scope}/fc/Gemm"),
            node("Tanh", f"g{turn}", y, f"{scope}/Tanh"),
        ]
        x = y
    times = {f"time{n}": np.full((1, 4), n / 4, np.float32) for n in range(3)}
    made = [
        onnx.helper.make_node(
            "Constant", [], [name], value=onnx.numpy_helper.from_array(time)
        )
        for name, time in times.items()
    ]
    text = check_source(
        graph([*made, *nodes], {"f.fc.weight": floats(4, 4)}, x=("batch", 4)),
        "return self.f(self.f(self.f(x, self.time0), self.time1), self.time2)",
    )
    assert text.count("class ") == 2


def cell(steps: int, stack: str, **options: Any) -> onnx.ModelProto:
    """An Elman cell over the elements of a sequence, one after the other."""
    nodes, h = [], "h"
    for t in range(steps):
        nodes += [
            node("Gather", f"x t{t}", f"x{t}", axis=1),
            node("Gemm", f"x{t} i.weight", f"a{t}", "/i/Gemm", transB=1),
            node("Gemm", f"{h} h.weight", f"b{t}", "/h/Gemm", transB=1),
            node("Add", f"a{t} b{t}", f"c{t}"),
            node("Tanh", f"c{t}", f"h{t}"),
        ]
        h = f"h{t}"
    if stack:
        nodes += [node("Unsqueeze", f"h{t} one", f"u{t}") for t in range(steps)]
        every = " ".join(f"u{t}" for t in range(steps))
        nodes.append(node("Concat", every, "y", axis=1))
    else:
        nodes.append(node("Relu", h, "y"))
    held: dict[str, Any] = {f"t{t}": np.array(t) for t in range(steps)}
    held |= {"i.weight": floats(4, 3), "h.weight": floats(4, 4), "one": np.array([1])}
    return graph(nodes, held, x=("batch", steps, 3), h=("batch", 4))


def test_a_cell_over_a_sequence_counts():
    check_source(
        cell(6, stack=""),
        """
        y = h
        for i in range(6):
            y = ops.tanh(self.i(x[:, i]) + self.h(y))
        return ops.relu(y)
        """,
        rtol=1e-4,
    )


def test_what_every_turn_gives_is_collected():
    check_source(
        cell(6, stack="all"),
        """
        collected = []
        for i in range(6):
            y = ops.tanh(self.i(x[:, i]) + self.h(y))
            collected.append(y)
        return ops.stack(collected, axis=1)
        """,
        rtol=1e-4,
    )


def test_a_turn_that_somebody_else_reads_is_no_turn():
    nodes = []
    for i in range(4):
        nodes.append(node("Gemm", f"v{i} w", f"g{i}", "/fc/Gemm", transB=1))
        nodes.append(node("Tanh", f"g{i}", f"v{i + 1}"))
    nodes[0].input[0] = "x"
    nodes.append(node("Add", "v2 v4", "y"))
    text = check_source(graph(nodes, {"w": floats(4, 4)}, x=("batch", 4)), rtol=1e-4)
    assert "range(4)" not in text


def test_what_is_joined_along_a_new_axis_is_stacked():
    nodes = [
        node("Relu", "x", "a"),
        node("Unsqueeze", "a last", "b"),
        node("Unsqueeze", "x last", "c"),
        node("Concat", "b c", "y", axis=2),
    ]
    check_source(
        graph(nodes, {"last": np.array([-1])}, x=("batch", 4)),
        "return ops.stack([ops.relu(x), x], axis=-1)",
    )
    nodes[3] = node("Concat", "b c", "y", axis=1)
    check_source(
        graph(nodes, {"last": np.array([-1])}, x=("batch", 4)),
        "return ops.concat([ops.relu(x).unsqueeze(-1), x.unsqueeze(-1)], axis=1)",
    )


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (np.float32(0), 'Tensor.zeros((x.shape[0], 3), dtype="float32", device='),
        (np.int64(7), 'Tensor.full((x.shape[0], 3), 7, dtype="int64", device='),
        (np.array([7]), 'Tensor.full((x.shape[0], 3), 7, dtype="int64", device='),
        (floats(1), "return ops.expand(self.number, shape=(x.shape[0], 3))"),
    ],
)
def test_an_expanded_number_fills_a_tensor(number, written):
    nodes = [
        node("Shape", "x", "n", start=0, end=1),
        node("Concat", "n three", "s", axis=0),
        node("Expand", "number s", "y"),
    ]
    held = {"three": np.array([3]), "number": np.array(number)}
    assert written in check_source(graph(nodes, held, x=("batch", 4)))


def test_a_part_of_what_a_module_returns_is_the_model_s_output():
    weights = {
        "decoder.rnn.w": floats(1, 16, 3),
        "decoder.rnn.r": floats(1, 16, 4, seed=1),
        "decoder.conv.weight": floats(2, 4, 1, seed=2),
        "axis": np.array([1]),
    }
    read = "x decoder.rnn.w decoder.rnn.r - - h c"
    at = "/decoder/rnn/LSTM"
    nodes = [
        node("LSTM", read, "hs hn cn", at, hidden_size=4),
        node("Squeeze", "hs axis", "h1", "/decoder/rnn/Squeeze"),
        node("Relu", "h1", "r", "/decoder/Relu"),
        node("Transpose", "r", "t", "/decoder/Transpose", perm=[1, 2, 0]),
        node("Conv", "t decoder.conv.weight", "s", "/decoder/conv/Conv"),
        node("Sigmoid", "s", "y", "/decoder/Sigmoid"),
    ]
    state = (1, 2, 4)
    made = graph(nodes, weights, "y hn cn", x=(5, 2, 3), h=state, c=state)
    text = check_source(made)
    assert "class Decoder(" in text
    assert "state[0], state[1]" in text


def test_a_table_that_layers_are_applied_to_is_passed_to_them():
    """DeBERTa's distances; the older exporter folds and copies the table for each."""
    nodes, x, held = [], "x", {"onnx::MatMul_1": floats(6, 4)}
    for i in range(3):
        at, own = f"/layers/layers.{i}", f"layers.{i}"
        table = f"onnx::MatMul_{4 * i + 1}"
        q, k = f"onnx::MatMul_{4 * i + 2}", f"onnx::MatMul_{4 * i + 3}"
        if i:
            nodes.append(node("Identity", "onnx::MatMul_1", table))
        nodes += [
            node("MatMul", f"{x} {q}", f"q{i}", f"{at}/q_proj/MatMul"),
            node("MatMul", f"{table} {k}", f"m{i}", f"{at}/k_proj/MatMul"),
            node("Add", f"{own}.k_proj.bias m{i}", f"k{i}", f"{at}/k_proj/Add"),
            node("Transpose", f"k{i}", f"t{i}", f"{at}/Transpose", perm=[1, 0]),
            node("MatMul", f"q{i} t{i}", f"s{i}", f"{at}/MatMul"),
            node("MatMul", f"s{i} k{i}", f"a{i}", f"{at}/MatMul_1"),
            node("Tanh", f"a{i}", f"y{i}", f"{at}/Tanh"),
        ]
        held |= {q: floats(4, 4, seed=2 * i + 1), k: floats(4, 4, seed=2 * i + 2)}
        held[f"{own}.k_proj.bias"] = floats(4, seed=20 + i)
        x = f"y{i}"
    check_source(
        graph(nodes, held, outputs=x, x=("batch", 4)),
        "self.k_proj = nn.Linear(4, 4)",
        "self.weight = nn.Param(nn.init.normal(0.02), (6, 4))",
        "for layer in self.layers:\n    y = layer(y, self.weight)",
    )


def test_a_layer_that_a_table_goes_through_too_is_one_layer():
    """The newer exporter gives both calls one scope."""
    held = {
        "attn.proj.weight": floats(4, 4),
        "attn.proj.bias": floats(4, seed=1),
        "distances": floats(6, 4, seed=2),
    }
    nodes = [
        node("Gemm", "x attn.proj.weight attn.proj.bias", "q", "/attn/proj/Gemm"),
        node("Gemm", "distances attn.proj.weight attn.proj.bias", "k", "/attn/proj/G"),
        node("Transpose", "k", "t", "/attn/Transpose"),
        node("MatMul", "q t", "s", "/attn/MatMul"),
        node("Tanh", "s", "y", "/Tanh"),
    ]
    check_source(
        graph(nodes, held, x=("batch", 4)),
        "self.proj = nn.Linear(4, 4)",
        "return self.proj(x) @ self.proj(self.distances).T",
    )
