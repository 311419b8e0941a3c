"""Loops over time, as TensorFlow's exporter writes layers of Keras."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.harness.source import source_of

TIME, BATCH, SIZE, HIDDEN = 5, 2, 3, 4

#: One step: x (BATCH, SIZE) and h give the next h; W, R, b are weights of the file.
CELLS = {
    "RNN": "a = MatMul(x, W) v = Add(a, b) c = MatMul(h, R) d = Add(v, c) n = Tanh(d)",
    "RNN, relu": "a = MatMul(h, R) c = MatMul(x, W) d = Add(a, c) n = Relu(d)",
    "GRU": """bs, bt = Split<axis=0, num_outputs=2>(b) p = Squeeze(bs, zero)
        q = Squeeze(bt, zero) i = MatMul(x, W) ib = Add(i, p) k = MatMul(h, R)
        kb = Add(k, q) iz, ir, ih = Split<axis=1, num_outputs=3>(ib)
        kz, kr, kh = Split<axis=1, num_outputs=3>(kb) z0 = Add(iz, kz)
        z = Sigmoid(z0) r0 = Add(ir, kr) r = Sigmoid(r0) g0 = Mul(r, kh)
        g1 = Add(ih, g0) g = Tanh(g1) m = Sub(one, z) o = Mul(m, g) w = Mul(z, h)
        n = Add(w, o)""",
    "GRU, r before": """i = MatMul(x, W) ib = Add(i, b)
        iz, ir, ih = Split<axis=1, num_outputs=3>(ib)
        Rz, Rr, Rh = Split<axis=1, num_outputs=3>(R) kz = MatMul(h, Rz)
        z0 = Add(iz, kz) z = Sigmoid(z0) kr = MatMul(h, Rr) r0 = Add(ir, kr)
        r = Sigmoid(r0) rh = Mul(r, h) g0 = MatMul(rh, Rh) g1 = Add(ih, g0)
        g = Tanh(g1) m = Sub(one, z) o = Mul(m, g) w = Mul(z, h) n = Add(w, o)""",
}
BOUNDED = CELLS["RNN, relu"].replace("n = Relu(d)", "e = Relu(d) n = Min(e, bound)")
LINES = {
    "RNN": "self.rnn = nn.RNN(3, 4)",
    "RNN, relu": 'self.rnn = nn.RNN(3, 4, bias=False, nonlinearity="relu")',
    "GRU": "self.gru = nn.GRU(3, 4)",
    "GRU, r before": "self.gru = nn.GRU(3, 4, reset_after=False)",
}


def _nodes(text: str) -> list[onnx.NodeProto]:
    head = '<ir_version: 9, opset_import: ["" : 18]> g (float x) => (float n) {'
    return list(onnx.parser.parse_model(f"{head} {text} }}").graph.node)


def loop_over_time(
    cell: str, *, step: str = "", steps: int = TIME, first: int = 0
) -> Any:
    """x (TIME, BATCH, SIZE) -> the states (TIME, BATCH, HIDDEN) and the last one."""
    rng = np.random.default_rng(0)
    gates = 3 if cell.startswith("GRU") else 1
    biases = {"RNN": (HIDDEN,), "GRU": (2, 3 * HIDDEN), "GRU, r before": (3 * HIDDEN,)}
    shapes = {
        "W": (SIZE, gates * HIDDEN),
        "R": (HIDDEN, gates * HIDDEN),
        "b": biases.get(cell, (1,)),
    }
    weights = {
        name: rng.normal(size=shape).astype(np.float32)
        for name, shape in shapes.items()
    }
    numbers = {
        "zero": np.array([0]),
        "one": np.float32(1),
        "bound": np.float32(9),
        "next": np.array(1),
        "most": np.array(TIME),
        "steps": np.array(steps),
        "true": np.array(True),
        "first": np.array(first),
        "h0": np.zeros((BATCH, HIDDEN), np.float32),
    }
    inside = "x = Gather(sequence, at) at2 = Add(at, next) going = Less(at2, most)"
    body = helper.make_graph(
        _nodes(f"{inside} {step or CELLS[cell]} each = Identity(n)"),
        "body",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, []),
            helper.make_tensor_value_info("before", TensorProto.BOOL, []),
            helper.make_tensor_value_info("at", TensorProto.INT64, []),
            helper.make_tensor_value_info("h", TensorProto.FLOAT, [BATCH, HIDDEN]),
        ],
        [
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("at2", TensorProto.INT64, []),
            helper.make_tensor_value_info("n", TensorProto.FLOAT, [BATCH, HIDDEN]),
            helper.make_tensor_value_info("each", TensorProto.FLOAT, [BATCH, HIDDEN]),
        ],
    )
    loop = helper.make_node(
        "Loop",
        ["steps", "true", "first", "h0"],
        ["end", "last", "y"],
        "loop",
        body=body,
    )
    shape = [TIME, BATCH, SIZE]
    graph = helper.make_graph(
        [loop],
        "g",
        [helper.make_tensor_value_info("sequence", TensorProto.FLOAT, shape)],
        [helper.make_empty_tensor_value_info(name) for name in ("y", "last")],
        [
            numpy_helper.from_array(np.asarray(array), name)
            for name, array in (weights | numbers).items()
        ],
    )
    opsets = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def _source(model: onnx.ModelProto, folder: Path) -> str:
    """The text; the numbers are those of the loop as the file has it."""
    text, made = source_of(model, folder)
    _, plain = source_of(model, folder, simplify=False)
    x = np.random.default_rng(1).normal(size=(TIME, BATCH, SIZE)).astype(np.float32)
    for one, other in zip(made(x), plain(x), strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), 1e-5, 1e-6)
    return text


@pytest.mark.parametrize("cell", CELLS)
def test_a_loop_over_time_is_a_layer(cell, tmp_path):
    text = _source(loop_over_time(cell), tmp_path)
    assert LINES[cell] in text, text
    assert "for " not in text


@pytest.mark.parametrize(
    ("cell", "changes"),
    [
        ("RNN", {"step": CELLS["RNN"].replace("Tanh", "Sigmoid")}),
        (
            "RNN",
            {"step": CELLS["RNN"].replace("n = Tanh(d)", "t = Tanh(d) n = Add(t, h)")},
        ),
        ("RNN", {"steps": TIME - 1}),
        ("RNN", {"first": 1}),
        ("GRU", {"step": CELLS["GRU"].replace("Sub(one, z)", "Sub(z, one)")}),
        # no state of a draw from the standard normal distribution reaches the bound
        ("RNN, relu", {"step": BOUNDED}),
    ],
    ids=[
        *("sigmoid", "residual", "one step less", "from the second on"),
        *("another sign", "bounded"),
    ],
)
def test_other_loops_stay_loops(cell, changes, tmp_path):
    text = _source(loop_over_time(cell, **changes), tmp_path)
    assert "for " in text
    assert not any(word in text for word in ("nn.RNN", "nn.GRU", "ops.gru"))


#: Keras' LSTM over sequences of any length, as tf2onnx writes it.
LSTM = """
<ir_version: 9, opset_import: ["" : 18]>
g (float[B, T, 3] x) => (float[S, B, 4] y, float[B, 4] h_end, float[B, 4] c_end)
{
  sequence = Transpose<perm = [1, 0, 2]>(x)
  sizes = Shape(sequence)
  length = Gather(sizes, zero)
  short = Cast<to = 6>(length)
  most = Cast<to = 1>(short)
  begins = Less(from, most)
  going = And(begins, begins)
  count = Cast<to = 7>(short)
  batch = Shape<start = 0, end = 1>(x)
  states = Concat<axis = 0>(batch, hidden)
  zeros = Expand(from, states)
  end, h_end, c_end, length_end, y = Loop(count, going, first, zeros, zeros, short) <
    body = step (int64 turn, bool before, int32 at, float[B, 4] h, float[B, 4] c,
                 int32 n)
    => (bool goes, int32 next, float[B, 4] h2, float[B, 4] c2, int32 n,
        float[B, 4] each) {
      next = Add(at, one)
      xt = Gather(sequence, at)
      given = MatMul(xt, W)
      kept = MatMul(h, R)
      sum = Add(given, kept)
      gates = Add(sum, b)
      i, f, g, o = Split<axis = 1, num_outputs = 4>(gates)
      i1 = Sigmoid(i)
      f1 = Sigmoid(f)
      g1 = Tanh(g)
      o1 = Sigmoid(o)
      old = Mul(f1, c)
      new = Mul(i1, g1)
      c2 = Add(old, new)
      c3 = Tanh(c2)
      each = Mul(o1, c3)
      h2 = Identity(each)
      at1 = Cast<to = 1>(next)
      n1 = Cast<to = 1>(n)
      turn1 = Cast<to = 1>(turn)
      n2 = Cast<to = 1>(short)
      within = Less(turn1, n2)
      less = Less(at1, n1)
      goes = And(within, less)
    }>
}
"""


def _lstm(folder: Path, *changes: tuple[str, str]) -> str:
    """The text; its numbers are those of the file, as it is, at any length."""
    text = LSTM
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    model = onnx.parser.parse_model(text)
    for node in model.graph.node:
        if node.op_type == "Loop" and node.input[0] == "no_limit":
            node.input[0] = ""
    rng = np.random.default_rng(0)
    shapes = {"W": (3, 16), "R": (4, 16), "b": (16,)}
    values: dict[str, Any] = {
        name: rng.normal(size=shape).astype(np.float32)
        for name, shape in shapes.items()
    }
    values |= {"zero": 0, "two": 2, "hidden": [4], "from": np.float32(0)}
    values |= {"first": np.int32(0), "one": np.int32(1), "far": 15}
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), name)
        for name, value in values.items()
    )
    source, made = source_of(model, folder)
    _, plain = source_of(model, folder, simplify=False)
    for batch, time in ((2, 5), (1, 3), (4, 4), (1, 20)):
        x = rng.normal(size=(batch, time, 3)).astype(np.float32)
        for one, other in zip(made(x), plain(x), strict=True):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), 1e-5, 1e-6)
    return source


def test_a_loop_of_any_length_is_an_lstm(tmp_path):
    text = _lstm(tmp_path)
    assert "self.lstm = nn.LSTM(3, 4)" in text, text
    assert "for " not in text


ENDLESS = ("Loop(count,", "Loop(no_limit,")


def test_a_condition_alone_ends_a_loop(tmp_path):
    """As recurrent dropout is exported, with masks of ones over the state."""
    masked = """ones = Shape(h) mask = ConstantOfShape<value = float[1] {1}>(ones)
      hm = Mul(h, mask) kept = MatMul(hm, R)"""
    text = _lstm(tmp_path, ENDLESS, ("kept = MatMul(h, R)", masked))
    assert "self.lstm = nn.LSTM(3, 4)" in text, text
    assert "for " not in text


CAPPED = "whole = Gather(sizes, zero) length = Min(whole, far)"


@pytest.mark.parametrize(
    "change",
    [
        ("Gather(sizes, zero)", "Gather(sizes, two)"),
        ("length = Gather(sizes, zero)", CAPPED),
        ("n2 = Cast<to = 1>(short)", "n2 = Cast<to = 1>(far)"),
        ("Loop(no_limit,", "Loop(far,"),
    ],
    ids=["as many steps as features", "15 at most", "or 15 steps", "a limit of 15"],
)
def test_other_conditions_stay(change, tmp_path):
    text = _lstm(tmp_path, ENDLESS, change)
    assert "nn.LSTM(" not in text


@pytest.mark.parametrize(
    "change",
    [
        ("f1 = Sigmoid(f)", "f1 = Tanh(f)"),
        ("each = Mul(o1, c3)", "each = Mul(o1, c2)"),
        ("h2 = Identity(each)", "h2 = Add(each, h)"),
        ("Gather(sizes, zero)", "Gather(sizes, two)"),
        ("= Shape(sequence)", "= Shape<start = 1>(sequence)"),
        ("length = Gather(sizes, zero)", CAPPED),
        ("float[B, 4] c_end)", "float[B, 4] c_end, int32 end)"),
        ("float[B, 4] c_end)", "float[B, 4] c_end, int32 length_end)"),
    ],
    ids=[
        *("another gate", "no tanh", "residual"),
        *("as many steps as features", "as many steps as examples", "15 at most"),
        *("a counter is a result", "the length is a result"),
    ],
)
def test_other_loops_of_two_states_stay_loops(change, tmp_path):
    text = _lstm(tmp_path, change)
    assert "nn.LSTM(" not in text
    assert "for " in text
