"""Ifs that ranks, sizes and what is behind them decide, at every depth."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.codegen.passes.forms import becomes, stays
from tests.harness.source import check_source, floats

HEAD = '<ir_version: 8, opset_import: ["" : 18]>'
#: An LSTM cell as a script has it: one sample, or a batch of them.
CELL = f"""{HEAD}
g (float[n, 4, t] x, float[n, 3] h, float[n, 3] c) => (float[n, 3] y)
{{
  last = Constant<value_ints=[2]>()
  zero = Constant<value_ints=[0]>()
  one = Constant<value_ints=[1]>()
  shape = Shape(x)
  size = Gather(shape, last)
  alone = Equal(size, one)
  s = If(alone) <then_branch = a () => (float[n, 4] s1) {{ s1 = Squeeze(x, last) }},
    else_branch = b () => (float[n, 4, t] s2) {{ s2 = Identity(x) }}>
  two = Constant<value_int=2>()
  rs = Shape(s)
  rank = Size(rs)
  is_batch = Equal(rank, two)
  not_batch = Not(is_batch)
  single = Cast<to=9>(not_batch)
  z = If(single) <then_branch = c () => (z1) {{ z1 = Unsqueeze(s, zero) }},
    else_branch = d () => (z2) {{ z2 = Identity(s) }}>
  hs = If(single) <then_branch = e () => (h1) {{ h1 = Unsqueeze(h, zero) }},
    else_branch = f () => (h2) {{ h2 = Identity(h) }}>
  cs = If(single) <then_branch = i () => (c1) {{ c1 = Unsqueeze(c, zero) }},
    else_branch = j () => (c2) {{ c2 = Identity(c) }}>
  line = Unsqueeze(z, zero)
  h0 = Unsqueeze(hs, zero)
  c0 = Unsqueeze(cs, zero)
  all, hn, cn = LSTM<hidden_size=3>(line, w, r, "", "", h0, c0)
  out = Squeeze(hn, zero)
  y = If(single) <then_branch = k () => (y1) {{ y1 = Squeeze(out, zero) }},
    else_branch = l () => (y2) {{ y2 = Identity(out) }}>
}}"""
INNER = f"""{HEAD}
g (float[n, 3] x, float[m] y) => (float[p, q] z)
{{
  zero = Constant<value_ints=[0]>()
  one = Constant<value_int=1>()
  three = Constant<value_ints=[3]>()
  shape = Shape(y)
  size = Gather(shape, zero)
  c = Equal(size, three)
  z = If(c) <then_branch = a () => (z1) {{
      own = Shape(x)
      width = Gather(own, one)
      wide = Cast<to=9>(width)
      z1 = If(wide) <then_branch = b () => (z3) {{ z3 = Exp(x) }},
        else_branch = d () => (z4) {{ z4 = Tanh(x) }}>
    }}, else_branch = e () => (z2) {{ z2 = Sin(x) }}>
}}"""
#: Its reader takes either rank, so nothing decides.
EITHER = (
    CELL.partition("  two =")[0].replace("(float[n, 3] y)", "(float[a, b] s)") + "}"
)
TWO_RESULTS = f"""{HEAD}
g (float[n, m] a, float[n, m] b) => (float[p, q] y, float[r, s] z)
{{
  one = Constant<value_ints=[1]>()
  zero = Constant<value_ints=[0]>()
  two = Constant<value_ints=[2]>()
  shape = Shape(a)
  rows = Gather(shape, zero)
  columns = Gather(shape, one)
  c = Equal(rows, one)
  y, z = If(c) <then_branch = t () => (t1, t2) {{
      d = Equal(columns, two)
      t1 = If(d) <then_branch = i () => (u1) {{ u1 = Exp(a) }},
        else_branch = j () => (u2) {{ u2 = Identity(a) }}>
      t2 = If(d) <then_branch = k () => (u3) {{ u3 = Exp(b) }},
        else_branch = l () => (u4) {{ u4 = Identity(b) }}>
    }}, else_branch = e () => (e1, e2) {{ e1 = Tanh(a) e2 = Tanh(b) }}>
}}"""


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def cell() -> onnx.ModelProto:
    model = parsed(CELL)
    for name, array in (("w", floats(1, 12, 4)), ("r", floats(1, 12, 3, seed=1))):
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return model


def test_what_an_lstm_takes_decides_the_ranks_before_it():
    feeds = {"x": floats(2, 4, 1), "h": floats(2, 3, seed=2), "c": floats(2, 3, seed=3)}
    text = becomes(cell(), feeds=feeds)
    assert "if " not in text
    assert "self.lstm(" in text


def test_the_same_question_has_one_answer_in_a_model_that_is_inlined():
    """Names of a model that spox has put into a branch are those of the model."""
    model = cell()
    for node in model.graph.node:
        node.name = f"If_0_then_branch__Inline_0__/cell/{node.op_type}"
    feeds = {"x": floats(2, 4, 1), "h": floats(2, 3, seed=2), "c": floats(2, 3, seed=3)}
    text = check_source(model, feeds=feeds)
    assert "= self.cell(" in text
    assert "Inline" not in text


def test_a_size_that_is_known_decides_inside_a_branch():
    feeds = {"x": floats(2, 3), "y": floats(3)}
    text = stays(parsed(INNER), "tanh", "if True", feeds=feeds)
    assert text.count("if ") == 1


@pytest.mark.parametrize("length", [1, 2])
def test_a_rank_that_nobody_asks_for_stays_open(length):
    text = check_source(parsed(EITHER), feeds=_either(length))
    assert "s = x.squeeze(2) if x.shape[2] == 1 else x" in text


def _either(length: int) -> dict[str, np.ndarray]:
    return {
        "x": floats(2, 4, length),
        "h": floats(2, 3, seed=2),
        "c": floats(2, 3, seed=3),
    }


@pytest.mark.parametrize("shape", [(1, 2), (3, 2), (1, 3)])
def test_results_of_branches_in_branches_keep_apart(shape):
    feeds = {"a": floats(*shape), "b": floats(*shape, seed=1)}
    check_source(parsed(TWO_RESULTS), feeds=feeds)
