"""ONNX's RotaryEmbedding is one call; cosines of the same angles are made once."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from burnish.codegen.account import Account
from burnish.codegen.passes.cse.share_angles import share_angles
from tests.codegen.passes.forms import becomes, form

HEADS, ROW = "2,3,5,8", "2,5,24"
EACH, ONE = "2,5,4", "1,5,4"
TURN = "return ops.rotary_embedding(x, cos, sin, {}per_pair=True)"
EACH_TURN = """return ops.rotary_embedding(
    x, cos.unsqueeze(1), sin.unsqueeze(1), per_pair=True
)"""
TURN_OF_ROW = """x2 = x.reshape(2, 5, 3, -1)
x2 = ops.rotary_embedding(x2, cos.unsqueeze(2), sin.unsqueeze(2), per_pair=True)
return x2.reshape(2, 5, -1)"""

CASES = {
    # name: (attributes, x, cos and sin, source)
    "a place has its angles": ("", HEADS, EACH, EACH_TURN),
    "alike in the batch": ("", HEADS, ONE, TURN.format("")),
    "neighbours": ("<interleaved=1>", HEADS, ONE, TURN.format("interleaved=True, ")),
    "first columns": ("<rotary_embedding_dim=4>", HEADS, "2,5,2", EACH_TURN),
    "heads in a row": ("<num_heads=3>", ROW, EACH, TURN_OF_ROW),
    "first neighbours of heads in a row": (
        "<num_heads=3, rotary_embedding_dim=4, interleaved=1>",
        ROW,
        "1,5,2",
        "return x2.reshape(2, 5, -1)",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_one_call(case):
    attributes, x, tables, source = case
    text = f"y = RotaryEmbedding{attributes}(x, cos, sin)"
    becomes(form(text, opset=23, x=x, cos=tables, sin=tables), source)


@pytest.mark.parametrize(("x", "option"), [(HEADS, ""), (ROW, "<num_heads=3>")])
def test_angles_of_given_places(x, option):
    text = f"y = RotaryEmbedding{option}(x, cos, sin, places)"
    inputs = {"x": x, "cos": "20,4", "sin": "20,4", "places": "int64[2,5]"}
    source = becomes(form(text, opset=23, **inputs))
    assert "cos[places].unsqueeze(" in source
    assert "ops.split" not in source


TWICE = """a = Mul(b, b) c = Cos(a) s = Sin(a) u = RotaryEmbedding(x, c, s)
    e = Neg(x) d = Cos(a) t = Sin(a) v = RotaryEmbedding(e, d, t) y = Sub(u, v)"""
INPUTS = {"x": HEADS, "b": EACH}


def test_numbers_of_the_same_angles_are_made_once():
    source = becomes(form(TWICE, opset=23, **INPUTS))
    assert source.count("ops.cos(") == source.count("ops.sin(") == 1


def test_numbers_are_made_where_the_angles_are():
    model = ir.from_proto(form(TWICE, opset=23, **INPUTS))
    for node, module in zip(list(model.graph), "rqqqkkkky", strict=True):
        node.name = f"/{module}/{node.op_type}"
    assert share_angles(model, Account())
    assert not share_angles(model, Account())
    made = [(node.op_type, (node.name or "")[:3]) for node in model.graph]
    assert made[:3] == [("Mul", "/r/"), ("Cos", "/r/"), ("Sin", "/r/")]
    assert [kind for kind, _ in made].count("Cos") == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("y = Sub(u, v)", "w = Mul(u, v) m = ReduceMax<keepdims=0>(d) y = Mul(w, m)"),
        ("d = Cos(a)", "n = Exp(a) d = Cos(n)"),
    ],
)
def test_other_cosines_stay(old, new):
    """One that something else reads too, and one of other angles."""
    assert old in TWICE
    source = becomes(form(TWICE.replace(old, new), opset=23, **INPUTS))
    assert source.count("ops.cos(") == 2


def test_the_first_columns_of_heads():
    text = """z = Constant<value_ints=[0]>() w = Constant<value_ints=[4]>()
        e = Constant<value_ints=[8]>() l = Constant<value_ints=[3]>()
        p = Slice(x, z, w, l) r = Slice(x, w, e, l) t = RotaryEmbedding(p, cos, sin)
        y = Concat<axis=-1>(t, r)"""
    tables = {"cos": "1,5,2", "sin": "1,5,2"}
    becomes(form(text, opset=23, x=HEADS, **tables), TURN.format(""))
