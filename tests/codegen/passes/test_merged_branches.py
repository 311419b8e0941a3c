"""Results that both branches of an If agree on are computed once, in front of it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.codegen.passes.forms import becomes, stays
from tests.harness.source import floats

FEEDS = [{"x": floats(3, 4), "c": np.array(flag)} for flag in (True, False)]


def of(then: str, other: str, ports: str = "(float[3, 5] y)") -> onnx.ModelProto:
    """An If with these branches; `m` is a weight (4, 5)."""
    ends = ", ".join(port.split()[-1] for port in ports.strip("()").split(", float"))
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 18]> '
        f"g (float[3, 4] x, bool c) => {ports} {{ "
        f"{ends} = If(c) <then_branch = a {then}, else_branch = b {other}> }}"
    )
    tensor = onnx.numpy_helper.from_array(floats(4, 5), "m")
    model.graph.initializer.append(tensor)
    return model


PRODUCT = "p = MatMul(x, m)"


@pytest.mark.parametrize("feeds", FEEDS, ids=["then", "else"])
def test_equal_branches_are_no_branches(feeds):
    made = of(f"() => (p) {{ {PRODUCT} }}", "() => (q) { q = MatMul(x, m) }")
    assert "if " not in becomes(made, "return self.linear(x)", feeds=feeds)


@pytest.mark.parametrize("feeds", FEEDS, ids=["then", "else"])
def test_what_differs_stays_behind_what_agrees(feeds):
    made = of(
        f"() => (p, r) {{ {PRODUCT} r = Relu(p) }}",
        "() => (q, s) { q = MatMul(x, m) s = Tanh(q) }",
        "(float[3, 5] y, float[3, 5] z)",
    )
    lines = ("y = self.linear(x)", "z = ops.relu(y) if c else ops.tanh(y)")
    becomes(made, *lines, feeds=feeds)


def test_branches_in_branches_agree_first():
    inner = "If(c) <then_branch = {} () => (u) {{ u = MatMul(x, m) }}, "
    inner += "else_branch = {} () => (v) {{ v = MatMul(x, m) }}>"
    made = of(
        f"() => (p) {{ p = {inner.format('d', 'e')} }}",
        "() => (q) { q = MatMul(x, m) }",
    )
    assert "if " not in becomes(made, "return self.linear(x)", feeds=FEEDS[0])


@pytest.mark.parametrize(
    ("then", "other"),
    [
        ("p = Softmax<axis=0>(x)", "q = Softmax<axis=1>(x)"),
        ("p = Elu<alpha=0.5>(x)", "q = Elu(x)"),
        (
            "k = Constant<value_floats=[1.0]>() p = Add(x, k)",
            "l = Constant<value_floats=[2.0]>() q = Add(x, l)",
        ),
        ("w = Relu(x) p = Sub(x, w)", "v = Relu(x) q = Sub(v, x)"),
    ],
    ids=["axis", "default", "constant", "order"],
)
def test_branches_that_differ_stay(then, other):
    made = of(f"() => (p) {{ {then} }}", f"() => (q) {{ {other} }}", "(float[n, k] y)")
    for feeds in FEEDS:
        assert " if c else " in stays(made, feeds=feeds)


def with_tables(first: list[float], second: list[float]) -> onnx.ModelProto:
    """An If whose branches add a table each, a Constant of several elements."""
    made = of(
        "() => (p) { k = Identity(x) p = Add(x, k) }",
        "() => (q) { l = Identity(x) q = Add(x, l) }",
        "(float[n, k] y)",
    )
    for attribute, table in zip(
        made.graph.node[0].attribute, (first, second), strict=True
    ):
        node = attribute.g.node[0]
        value = onnx.numpy_helper.from_array(np.array(table, np.float32))
        constant = onnx.helper.make_node("Constant", [], node.output, value=value)
        node.CopyFrom(constant)
    return made


@pytest.mark.parametrize("feeds", FEEDS, ids=["then", "else"])
def test_tables_are_compared_by_content(feeds):
    table = [1.0, 2.0, 3.0, 4.0]
    assert " if c" not in becomes(
        with_tables(table, table), "return x + self.k", feeds=feeds
    )
    other = [1.0, 2.0, 3.0, 5.0]
    assert " if c else " in stays(with_tables(table, other), feeds=feeds)


def test_equal_constants_of_both_branches_are_one():
    made = of(
        "() => (p) { k = Constant<value_floats=[3.0]>() p = Mul(x, k) }",
        "() => (q) { l = Constant<value_floats=[3.0]>() q = Mul(x, l) }",
        "(float[n, k] y)",
    )
    assert " if c" not in becomes(made, "return x * 3.0", feeds=FEEDS[1])
