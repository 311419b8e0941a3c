"""Heads that were merged with the batch for a product of three axes are apart again."""

from __future__ import annotations

import pytest

from tests.codegen.passes.forms import becomes, form, stays

QKV = {"q": "N,5,8", "k": "N,5,8", "v": "N,5,8"}
HEADS = (
    "by = Constant<value_ints=[-1, 5, 2, 4]>() rows = Constant<value_ints=[-1, 5, 4]>()"
)
APART = "apart = Constant<value_ints=[-1, 2, 5, {}]>()"


def merged(name: str) -> str:
    """(N, 5, 8) to (N * 2, 5, 4)"""
    return f"""{name}1 = Reshape({name}, by)
    {name}2 = Transpose<perm=[0, 2, 1, 3]>({name}1) {name}3 = Reshape({name}2, rows)"""


HALF = "half = Constant<value_float=0.5>()"
START = f"{HEADS} {merged('q')} {merged('k')} {merged('v')} {HALF}"
SCORES = "kt = Transpose<perm=[0, 2, 1]>(k3) p = MatMul(q3, kt) s = Mul(p, half)"
END = f"o = MatMul(w, v3) {APART.format(4)} y = Reshape(o, apart)"
ATTENTION = """
x = q.reshape(-1, 5, 2, 4).transpose(0, 2, 1, 3)
y = k.reshape(-1, 5, 2, 4).transpose(0, 2, 1, 3)
return ops.scaled_dot_product_attention(
    x, y, v.reshape(-1, 5, 2, 4).transpose(0, 2, 1, 3){}
)
"""

FORMS = {
    "products of three axes": (f"{START} {SCORES} w = Softmax(s) {END}", ""),
    "scores apart for a mask": (
        f"""{START} {SCORES} {APART.format(5).replace("apart", "four")}
        s4 = Reshape(s, four) m = Add(s4, mask) w4 = Softmax(m)
        back = Constant<value_ints=[-1, 5, 5]>() w = Reshape(w4, back) {END}""",
        ", attn_mask=mask",
    ),
    "the factor before the keys are turned": (
        f"""{START} u = Mul(k3, half) kt = Transpose<perm=[0, 2, 1]>(u)
        s = MatMul(q3, kt) w = Softmax<axis=2>(s) {END}""",
        "",
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_attention(name):
    text, mask = FORMS[name]
    extra = {"mask": "N,1,5,5"} if mask else {}
    source = becomes(form(text, **QKV, **extra), ATTENTION.format(mask))
    assert "reshape(-1, 5, 4)" not in source


def test_what_each_example_has_of_its_own_is_split():
    text = f"""{START} {SCORES} b = Add(s, slopes)
    four = Constant<value_ints=[-1, 2, 5, 5]>() b4 = Reshape(b, four)
    m = Add(b4, mask) w4 = Softmax(m) back = Constant<value_ints=[-1, 5, 5]>()
    w = Reshape(w4, back) {END}"""
    model = form(text, **dict.fromkeys("qkv", "3,5,8"), slopes="6,1,5", mask="3,1,5,5")
    source = stays(model, "(-1, 5, 4)")
    assert "x, y, z, attn_mask=slopes.reshape(-1, 2, 1, 5) + mask" in source


def test_tables_that_are_repeated_for_each_example_are_broadcast():
    text = f"""{HEADS} {merged("q")} one = Constant<value_ints=[1]>()
    sh = Shape<start=0, end=1>(q) times = Concat<axis=0>(sh, one, one)
    t = Tile(table, times) p = MatMul(q3, t)
    four = Constant<value_ints=[-1, 2, 5, 7]>() y = Reshape(p, four)"""
    model = form(text, q="N,5,8", table="2,4,7")
    line = "return q.reshape(-1, 5, 2, 4).transpose(0, 2, 1, 3) @ table"
    assert "tile" not in becomes(model, line)


def test_a_merged_tensor_that_is_read_elsewhere_stays():
    text = f"""{HEADS} {merged("q")} {merged("k")} kt = Transpose<perm=[0, 2, 1]>(k3)
    p = MatMul(q3, kt) e = Exp(p) total = ReduceSum<keepdims=0>(e)
    four = Constant<value_ints=[-1, 2, 5, 5]>() r = Reshape(p, four)
    y = Add(r, total)"""
    source = stays(form(text, q="N,5,8", k="N,5,8"))
    assert "reshape(-1, 5, 4)" in source


def test_axes_that_were_never_merged_stay():
    text = """p = MatMul(q, k) four = Constant<value_ints=[-1, 2, 5, 7]>()
    y = Reshape(p, four)"""
    model = form(text, q="4,5,6", k="4,6,7")
    becomes(model, "return (q @ k).reshape(-1, 2, 5, 7)")
