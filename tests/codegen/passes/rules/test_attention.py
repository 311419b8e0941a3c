"""Attention in the forms that exporters and authors write is one call again."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.passes.forms import becomes, form, stays

QKV = {"q": "2,3,5,4", "k": "2,3,5,4", "v": "2,3,5,4"}
CALL = "ops.scaled_dot_product_attention(q, k, v{})"
TURN = "t = Transpose<perm=[0, 1, 3, 2]>(k)"
SCORES = f"c = Constant<value_float=0.5>() {TURN} p = MatMul(q, t) s = Mul(p, c)"
LOW = "low = Constant<value_float=-3.4028235e38>()"
NONE = "low = Constant<value_float=-inf>() zero = Constant<value_float=0.0>()"
ROOT = "r = Constant<value_float=0.70710677>()"
TRI = np.tri(9, dtype=bool).reshape(1, 1, 9, 9)
CUT = """lo = Constant<value_ints=[0, 0]>() hi = Constant<value_ints=[5, 5]>()
ax = Constant<value_ints=[2, 3]>() tri = Slice(table, lo, hi, ax)"""

FORMS = {
    "scaled scores": (f"{SCORES} w = Softmax(s) y = MatMul(w, v)", "", {}),
    "divided scores": (
        f"""c = Constant<value_float=2.0>() {TURN} p = MatMul(q, t) s = Div(p, c)
        w = Softmax<axis=3>(s) y = MatMul(w, v)""",
        "",
        {},
    ),
    "scaled queries": (
        f"""c = Constant<value_float=0.5>() {TURN} z = Mul(c, q) s = MatMul(z, t)
        w = Softmax(s) y = MatMul(w, v)""",
        "",
        {},
    ),
    "both scaled by the root": (
        f"""{ROOT} {TURN} z = Mul(q, r) u = Mul(t, r) s = MatMul(z, u)
        w = Softmax(s) y = MatMul(w, v)""",
        "",
        {},
    ),
    "keys scaled before they are turned": (
        f"""{ROOT} z = Mul(q, r) u = Mul(k, r) t = Transpose<perm=[0, 1, 3, 2]>(u)
        s = MatMul(z, t) w = Softmax(s) y = MatMul(w, v)""",
        "",
        {},
    ),
    "no factor": (
        f"{TURN} s = MatMul(q, t) w = Softmax(s) y = MatMul(w, v)",
        ", scale=1.0",
        {},
    ),
    "another factor": (
        f"""c = Constant<value_float=0.25>() {TURN} p = MatMul(q, t) s = Mul(p, c)
        w = Softmax(s) y = MatMul(w, v)""",
        ", scale=0.25",
        {},
    ),
    "a factor that is computed": (
        f"""sh = Shape(q) i = Constant<value_int=-1>() d = Gather(sh, i)
        f = Cast<to=1>(d) root = Sqrt(f) {TURN} p = MatMul(q, t) s = Div(p, root)
        w = Softmax(s) y = MatMul(w, v)""",
        "",
        {},
    ),
    "a mask to add": (
        f"{SCORES} a = Add(s, mask) w = Softmax(a) y = MatMul(w, v)",
        ", attn_mask=mask",
        {"mask": "2,1,5,5"},
    ),
    "a bias and a mask": (
        f"{SCORES} a = Add(s, bias) b = Add(a, mask) w = Softmax(b) y = MatMul(w, v)",
        ", attn_mask=bias + mask",
        {"bias": "3,5,5", "mask": "2,1,5,5"},
    ),
    "booleans that keep": (
        f"{SCORES} {NONE} a = Where(mask, s, low) w = Softmax(a) y = MatMul(w, v)",
        ", attn_mask=mask",
        {"mask": "bool[2,1,1,5]"},
    ),
    "booleans that block": (
        f"{SCORES} {NONE} a = Where(mask, low, s) w = Softmax(a) y = MatMul(w, v)",
        ", attn_mask=~mask",
        {"mask": "bool[2,1,1,5]"},
    ),
    "booleans that do not block": (
        f"""{SCORES} {NONE} b = Not(mask) a = Where(b, low, s) w = Softmax(a)
        y = MatMul(w, v)""",
        ", attn_mask=mask",
        {"mask": "bool[2,1,1,5]"},
    ),
    "booleans made numbers": (
        f"""{SCORES} {NONE} m = Where(mask, zero, low) a = Add(s, m)
        w = Softmax(a) y = MatMul(w, v)""",
        ", attn_mask=mask",
        {"mask": "bool[2,1,1,5]"},
    ),
    "queries without keys": (
        f"""{SCORES} {NONE} m = Where(mask, zero, low) a = Add(s, m) w = Softmax(a)
        n = IsNaN(w) g = Where(n, zero, w) y = MatMul(g, v)""",
        ", attn_mask=mask",
        {"mask": "bool[2,1,5,5]"},
    ),
    "a table of causes": (
        f"""{SCORES} {LOW} {CUT} a = Where(tri, s, low) w = Softmax(a)
        y = MatMul(w, v)""",
        ", is_causal=True",
        {},
    ),
    "a cause beside a bias": (
        f"""{SCORES} {NONE} {CUT} b = Add(s, bias) a = Where(tri, b, low)
        w = Softmax(a) y = MatMul(w, v)""",
        ", attn_mask=bias, is_causal=True",
        {"bias": "3,5,5"},
    ),
    "a triangle that is computed": (
        f"""{SCORES} {NONE} n = Constant<value_ints=[5, 5]>()
        f = ConstantOfShape<value=float[1] {{-inf}}>(n) k1 = Constant<value_int=1>()
        tri = Trilu<upper=1>(f, k1) a = Add(s, tri) w = Softmax(a) y = MatMul(w, v)""",
        ", is_causal=True",
        {},
    ),
    "places compared": (
        f"""{SCORES} {LOW} o = Constant<value_int=0>() e = Constant<value_int=5>()
        one = Constant<value_int=1>() r = Range(o, e, one)
        c0 = Constant<value_ints=[1]>() c1 = Constant<value_ints=[0]>()
        row = Unsqueeze(r, c0) col = Unsqueeze(r, c1) keep = LessOrEqual(col, row)
        a = Where(keep, s, low) w = Softmax(a) y = MatMul(w, v)""",
        ", is_causal=True",
        {},
    ),
    "scores held by tanh": (
        f"""{SCORES} cap = Constant<value_float=30.0>() d = Div(s, cap) h = Tanh(d)
        m = Mul(h, cap) w = Softmax(m) y = MatMul(w, v)""",
        ", softcap=30.0",
        {},
    ),
}


@pytest.mark.parametrize("case", FORMS)
def test_attention_is_one_call(case):
    text, options, more = FORMS[case]
    weights = {"table": TRI} if "table" in text else None
    model = form(text, weights=weights, **QKV, **more)
    rows = np.random.default_rng(0)
    feeds = {
        name: rows.standard_normal([int(n) for n in shape.split(",")]).astype("f")
        for name, shape in (QKV | more).items()
        if "bool" not in shape
    }
    for name, shape in more.items():
        if "bool" in shape:
            dims = [int(n) for n in shape[5:-1].split(",")]
            feeds[name] = rows.random(dims) > 0.4
            feeds[name][..., 1:3] = [True, False]
    becomes(model, f"return {CALL.format(options)}", feeds=feeds)


THREE = {"q": "2,5,4", "k": "2,5,4", "v": "2,5,4"}


def test_three_axes_are_attention_too():
    text = """c = Constant<value_float=0.5>() t = Transpose<perm=[0, 2, 1]>(k)
    p = MatMul(q, t) s = Mul(p, c) w = Softmax(s) y = MatMul(w, v)"""
    becomes(form(text, **THREE), f"return {CALL.format('')}")


def test_heads_that_share_keys_and_values():
    text = f"""ax = Constant<value_ints=[2]>()
    n = Constant<value_ints=[2, 3, 2, 5, 4]>() f = Constant<value_ints=[2, 6, 5, 4]>()
    a = Unsqueeze(k, ax) b = Expand(a, n) kk = Reshape(b, f)
    d = Unsqueeze(v, ax) e = Expand(d, n) vv = Reshape(e, f)
    {SCORES.replace("(k)", "(kk)")} w = Softmax(s) y = MatMul(w, vv)"""
    model = form(text, **(QKV | {"q": "2,6,5,4"}))
    becomes(model, f"return {CALL.format('')}")


def test_heads_are_split_as_an_author_splits_them():
    text = f"""sh = Shape(x) i0 = Constant<value_int=0>() i1 = Constant<value_int=1>()
    ax = Constant<value_ints=[0]>() b0 = Gather(sh, i0) t0 = Gather(sh, i1)
    b = Unsqueeze(b0, ax) t1 = Unsqueeze(t0, ax) m = Constant<value_ints=[-1]>()
    four = Constant<value_ints=[4]>() to = Concat<axis=0>(b, t1, m, four)
    h = MatMul(x, wq) qr = Reshape(h, to) q = Transpose<perm=[0, 2, 1, 3]>(qr)
    h2 = MatMul(x, wk) kr = Reshape(h2, to) k = Transpose<perm=[0, 2, 1, 3]>(kr)
    h3 = MatMul(x, wv) vr = Reshape(h3, to) v = Transpose<perm=[0, 2, 1, 3]>(vr)
    {SCORES} w = Softmax(s) o = MatMul(w, v) l = Transpose<perm=[0, 2, 1, 3]>(o)
    back = Concat<axis=0>(b, t1, m) y = Reshape(l, back)"""
    rows = np.random.default_rng(1)
    weights = {
        name: rows.standard_normal((8, 8)).astype("f") for name in ("wq", "wk", "wv")
    }
    becomes(
        form(text, weights=weights, x="batch,time,8"),
        "batch, time, _ = x.shape",
        """
        o = ops.scaled_dot_product_attention(q, k, v)
        return o.transpose(0, 2, 1, 3).reshape(batch, time, -1)
        """,
        size=5,
    )


MISSES = {
    "softmax along the queries": (
        f"{SCORES} w = Softmax<axis=2>(s) y = MatMul(w, v)",
        {},
    ),
    "the weights are read elsewhere": (
        f"{SCORES} w = Softmax(s) z = MatMul(w, v) m = ReduceMax(w) y = Add(z, m)",
        {},
    ),
    "a mask that hides little": (
        f"""{SCORES} low = Constant<value_float=-10.0>() a = Where(mask, s, low)
        w = Softmax(a) y = MatMul(w, v)""",
        {"mask": "bool[2,1,1,5]"},
    ),
    "another number for queries without keys": (
        f"""{SCORES} one = Constant<value_float=1.0>() a = Add(s, mask) w = Softmax(a)
        n = IsNaN(w) g = Where(n, one, w) y = MatMul(g, v)""",
        {"mask": "2,1,5,5"},
    ),
    "tanh of another size": (
        f"""{SCORES} cap = Constant<value_float=30.0>() o = Constant<value_float=20.0>()
        d = Div(s, cap) h = Tanh(d) m = Mul(h, o) w = Softmax(m) y = MatMul(w, v)""",
        {},
    ),
}


@pytest.mark.parametrize("case", MISSES)
def test_what_is_no_attention_stays(case):
    text, more = MISSES[case]
    stays(form(text, **QKV, **more), "scaled_dot_product_attention")


def test_a_memory_of_weights_is_no_attention():
    text = "s = MatMul(x, keys) w = Softmax(s) y = MatMul(w, values)"
    rows = np.random.default_rng(2)
    weights = {
        "keys": rows.standard_normal((4, 6)).astype("f"),
        "values": rows.standard_normal((6, 4)).astype("f"),
    }
    stays(form(text, weights=weights, x="3,4"), "scaled_dot_product_attention")


SHAPES = {
    "a triangle that starts later": CUT.replace("[0, 0]", "[1, 0]").replace(
        "[5, 5]", "[6, 5]"
    ),
    "a triangle cut short": CUT.replace("[5, 5]", "[5, 1]"),
}


@pytest.mark.parametrize("case", SHAPES)
def test_other_triangles_are_no_cause(case):
    text = f"""{SCORES} {LOW} {SHAPES[case]} a = Where(tri, s, low) w = Softmax(a)
    y = MatMul(w, v)"""
    stays(form(text, weights={"table": TRI}, **QKV), "is_causal")


@pytest.mark.parametrize(
    "mask",
    [
        "b = Add(s, hide) a = Where(tri, b, low)",
        "b = Where(tri, s, low) a = Add(b, hide)",
    ],
)
def test_a_cause_beside_a_mask_that_may_hide_the_first_keys(mask):
    """The keys behind a query then count as much as those that are hidden."""
    low = "low = Constant<value_float=-1e30>()"  # twice the least one overflows
    text = f"{SCORES} {low} {CUT} {mask} w = Softmax(a) y = MatMul(w, v)"
    model = form(text, weights={"table": TRI}, **QKV, hide="2,1,1,5")
    random = np.random.default_rng(0)
    feeds = {n: random.standard_normal((2, 3, 5, 4)).astype("f") for n in "qkv"}
    feeds["hide"] = np.zeros((2, 1, 1, 5), "f")
    feeds["hide"][1, ..., :2] = -1e30
    stays(model, "is_causal", feeds=feeds)
