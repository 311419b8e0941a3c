"""Numbers and rows that are the same for each element are written once."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.passes.forms import becomes, form, stays


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "f = ConstantOfShape<value=float {3}>(sh) y = Min(x, f)",
            "return ops.minimum(x, 3.0)",
        ),
        ("f = Expand(c, sh) y = Add(f, x)", "return 0.5 + x"),
        ("f = Expand(c, sh) y = Max(x, f)", "return ops.maximum(x, 0.5)"),
    ],
)
def test_a_number_for_each_element(text, line):
    text = f"sh = Shape(x) c = Constant<value_float=0.5>() {text}"
    becomes(form(text, x="b,4"), line, feeds={"x": np.eye(3, 4, dtype="float32") * 5})


def test_a_number_for_more_elements():
    text = """sh = Constant<value_ints=[3, 4]>() c = Constant<value_float=0.5>()
        f = Expand(c, sh) y = Max(x, f)"""
    stays(form(text, x="b,4"), "(x, 0.5)", feeds={"x": np.ones((1, 4), "float32")})


TABLE = np.arange(12, dtype=np.float32).reshape(3, 4)
SAME = """sh = Constant<value_ints=[2, 5]>() n = Constant<value_ints=[2]>()
    i = Expand(n, sh) g = Gather(types.weight, i)"""


def _with_table(text, x):
    model = form(text.replace("types.weight", "w"), x=x, weights={"w": TABLE})
    model.graph.initializer[0].name = "types.weight"
    for node in model.graph.node:
        for place, name in enumerate(node.input):
            node.input[place] = "types.weight" if name == "w" else name
    return model


def test_the_same_row_for_each():
    model = _with_table(f"{SAME} y = Add(x, g)", "2,5,4")
    source = becomes(model, feeds={"x": np.ones((2, 5, 4), np.float32)})
    assert ".weight[2]" in source
    assert "nn.Embedding(3, 4)" in source


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Add(x, g)", "Mul(x, g)"),
        ("x: 2,5,4", "x: 1,5,4"),
        ("i = Expand(n, sh)", "i = Constant<value=int64[1,2] {1, 2}>()"),
    ],
    ids=["a product", "more rows than there were", "two rows"],
)
def test_other_rows(old, new):
    text, _, x = f"{SAME} y = Add(x, g) x: 2,5,4".replace(old, new).partition(" x: ")
    if "{1, 2}" in new:
        x = "1,2,4"
    shape = tuple(map(int, x.split(",")))
    stays(_with_table(text, x), ".weight[", feeds={"x": np.ones(shape, np.float32)})


def test_a_choice_between_numbers_of_one_element():
    text = """a = Constant<value_floats=[0.0]>() b = Constant<value_floats=[1.5]>()
        c = Greater(x, z) d = Where(c, a, b) y = Add(x, d)"""
    source = becomes(form(text, x="batch,4", z="batch,4"))
    assert "x + ops.where(x > z, 0.0, 1.5)" in source, source
    assert "nn.Buffer" not in source


@pytest.mark.parametrize("text", ["Add(x, {})", "Mul({}, x)", "Sub(x, {})"])
def test_a_persons_number_with_axes_is_none_to_train(text):
    """tf2onnx gives an epsilon as many axes as what it is added to."""
    name = "const_fold_opt__12"
    number = np.full((1, 1, 1), 0.001, np.float32)
    model = form(f"y = {text.format(name)}", x="2,3,4", weights={name: number})
    assert "0.001" in becomes(model)


def test_other_numbers_with_axes_train():
    for name, number in (("const_fold_opt__12", 0.12345), ("scale", 0.5)):
        weights = {name: np.full((1, 1, 1), number, np.float32)}
        model = form(f"y = Mul(x, {name})", x="2,3,4", weights=weights)
        assert "nn.Param" in becomes(model)


def test_all_inputs_of_a_maximum_count():
    text = """s = Shape(x) n = ConstantOfShape<value = float[1] {0.5}>(s) t = Tanh(x)
        y = Max(x, n, t)"""
    assert "ops.tanh(x)" in becomes(form(text, x="batch,4"))
