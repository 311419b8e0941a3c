"""Masks of attention by position, and masks that are applied several times."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.passes.forms import becomes, form, stays

PLACES = """sh = Shape(x) z = Constant<value_int=0>() o = Constant<value_int=1>()
    two = Constant<value_int=2>() n = Gather(sh, two) r = Range(z, n, o)
    ka = Constant<value_ints=[0,1,2]>() qa = Constant<value_ints=[0,1,3]>()
    k = Unsqueeze(r, ka) q = Unsqueeze(r, qa)"""
ATTENDED = """t = Transpose<perm=[0,1,3,2]>(x) s = MatMul(x, t)
    f = Constant<value_float=0.5>() d = Mul(s, f)
    hide = Constant<value_float=-inf>() w = Where(m, d, hide) p = Softmax(w)
    y = MatMul(p, x)"""
INPUTS = {"x": "2,3,5,4", "keep": "bool[2,1,1,5]"}


@pytest.mark.parametrize(
    ("mask", "line"),
    [
        ("c = LessOrEqual(k, q) m = And(c, keep)", "x, x, x, keep, is_causal=True"),
        ("c = GreaterOrEqual(q, k) m = And(keep, c)", "x, x, x, keep, is_causal=True"),
        ("c = GreaterOrEqual(q, z) m = And(c, keep)", "x, x, x, keep"),
        ("c = GreaterOrEqual(k, z) m = And(keep, c)", "x, x, x, keep"),
    ],
)
def test_what_a_mask_says_of_places(mask, line):
    model = form(f"{PLACES} {mask} {ATTENDED}", **INPUTS)
    source = becomes(model, feeds=feeds())
    assert f"scaled_dot_product_attention({line})" in source.replace("attn_mask=", "")


@pytest.mark.parametrize(
    "mask",
    [
        "e = Add(q, o) c = Less(e, k) b = Not(c) m = And(b, keep)",
        "c = GreaterOrEqual(k, o) m = And(c, keep)",
        "c = LessOrEqual(k, q) m = Or(c, keep)",
    ],
)
def test_other_masks_stay(mask):
    model = form(f"{PLACES} {mask} {ATTENDED}", **INPUTS)
    stays(model, "is_causal", "mask=keep", feeds=feeds())


def feeds():
    random = np.random.default_rng(0)
    keep = np.ones((2, 1, 1, 5), bool)
    keep[1, ..., 3:] = False
    x = random.standard_normal((2, 3, 5, 4)).astype(np.float32)
    return {"x": x, "keep": keep}


LOWER = """sh = Shape(x) z = Constant<value_int=0>() o = Constant<value_int=1>()
    two = Constant<value_ints=[2]>() n = Gather(sh, two) nn = Concat<axis=0>(n, n)
    ones = Constant<value_floats=[1.0]>() full = Expand(ones, nn)
    tri = Trilu<upper=0>(full) none = Constant<value_float=0.0>()
    later = Equal(tri, none) keep = Not(later)
    low = Constant<value_float=-3.4028235e38>() half = Constant<value_float=-1e38>()"""
SCORES = """t = Transpose<perm=[0,1,3,2]>(x) s = MatMul(x, t)
    f = Constant<value_float=0.5>() d = Mul(s, f)"""
SUM = f"{SCORES} w = Add(d, m) p = Softmax(w) y = MatMul(p, x)"
SPREAD = """bt = Constant<value_ints=[0]>() b = Gather(sh, bt)
    one = Constant<value_ints=[1]>() wide = Concat<axis=0>(b, one, n, n)"""
BIAS = """g = Gather(table, at) h = Transpose<perm=[2,0,1]>(g)
    u = Constant<value_ints=[0]>() bias = Unsqueeze(h, u)"""
TABLE = np.random.default_rng(1).standard_normal((9, 3)).astype(np.float32)


@pytest.mark.parametrize(
    ("mask", "line"),
    [
        ("m = Where(keep, none, low)", "x, x, x, is_causal=True"),
        (
            f"{SPREAD} k = Expand(keep, wide) m = Where(k, none, low)",
            "x, x, x, is_causal=True",
        ),
        (
            f"{SPREAD} w0 = Where(keep, none, low) m = Expand(w0, wide)",
            "x, x, x, is_causal=True",
        ),
        (f"{SPREAD} m = Expand(none, wide)", "scaled_dot_product_attention(x, x, x)"),
        (f"{BIAS} w0 = Expand(none, nn) m = Add(w0, bias)", "x, x, x, attn_mask=mask)"),
    ],
    ids=["triangle", "spread", "spread behind", "zeros", "table and zeros"],
)
def test_numbers_that_are_added(mask, line):
    source = becomes(_added(mask), feeds=_placed())
    assert line in " ".join(source.replace("\n", " ").split())


@pytest.mark.parametrize(
    "mask",
    [
        "w0 = Where(keep, none, half) w1 = Where(pad, none, half) m = Add(w0, w1)",
        "w0 = Where(later, none, low) m = Identity(w0)",
        "c = Constant<value_float=0.5>() w0 = Expand(c, nn) m = Identity(w0)",
    ],
    ids=["where no key may be left", "keys behind", "another number"],
)
def test_other_numbers_stay(mask):
    stays(_added(mask), "is_causal", "x, x, x)", feeds=_placed())


def test_a_sum_is_made_once_for_all_layers():
    again = SUM.replace("(x,", "(y1,").replace(", x)", ", y1)")
    again = again.replace("y = ", "y = ").replace("m)", "m2)")
    for name in ("t", "s", "f", "d", "w", "p"):
        again = again.replace(f"{name} = ", f"{name}2 = ").replace(
            f"({name},", f"({name}2,"
        )
        again = again.replace(f", {name})", f", {name}2)").replace(
            f"({name})", f"({name}2)"
        )
    mask = f"{BIAS} w1 = Where(pad, none, low)"
    text = f"{LOWER} {mask} m = Add(bias, w1) {SUM.replace('y = ', 'y1 = ')}"
    text = f"{text} m2 = Add(w1, bias) {again}"
    source = becomes(_form(text), feeds=_placed())
    assert source.count("scaled_dot_product_attention(") == 2
    assert source.count(" + ") == 1


def _added(mask):
    return _form(f"{LOWER} {mask} {SUM}")


def _form(text):
    inputs = {"x": "2,3,5,4", "at": "int64[5,5]", "pad": "bool[2,1,1,5]"}
    return form(text, **inputs, weights={"table": TABLE})


def _placed():
    pad = np.ones((2, 1, 1, 5), bool)
    pad[1, ..., :2] = False
    at = np.abs(np.arange(5)[:, None] - np.arange(5))
    return {"x": feeds()["x"], "at": at, "pad": pad}


SPREADS = """sh = Shape(x) a = Constant<value_ints=[0]>() c = Constant<value_ints=[2]>()
    b = Gather(sh, a) n = Gather(sh, c) one = Constant<value_ints=[1]>()
    wide = Concat<axis=0>(b, one, n, n) k = Expand(pad, wide)
    none = Constant<value_float=0.0>() low = Constant<value_float=-1e9>()"""


@pytest.mark.parametrize(
    ("rest", "spread"),
    [
        (f"m = Where(k, none, low) {SUM}", 0),
        (f"m = Where(k, none, low) {SUM.replace('y = ', 'o = ')} y = Mul(o, m)", 1),
    ],
    ids=["a mask", "a factor too"],
)
def test_only_masks_are_as_wide_as_they_are(rest, spread):
    text = f"{SPREADS} {rest}".replace("Mul(o, m)", "ReduceSum<keepdims=0>(m)")
    inputs = {"x": "b,3,n,4", "pad": "bool[b,1,1,n]"}
    feeds = {name: _placed()[name] for name in inputs}
    source = becomes(form(text, **inputs), feeds=feeds)
    assert source.count("ops.expand(") == spread
