"""Masks that are made place by place are read as a whole."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.passes.forms import becomes, form, stays

COUNTED = """sh = Shape(x) z = Constant<value_int=0>() o = Constant<value_int=1>()
    n0 = Gather(sh, z) n1 = Gather(sh, o) a = Range(z, n0, o) b = Range(z, n1, o)
    a3 = Constant<value_ints=[1,2,3]>() b3 = Constant<value_ints=[0,1,2]>()
    l = Constant<value_ints=[-1]>()
    p = Unsqueeze(a, a3) q = Unsqueeze(b, b3) m = Max(p, q) s = Shape(m)"""
GATHERED = f"""{COUNTED} pe = Expand(p, s) qe = Expand(q, s) pu = Unsqueeze(pe, l)
    qu = Unsqueeze(qe, l) i = Concat<axis=-1>(pu, qu) y = GatherND(x, i)"""
GATHERED = GATHERED.replace("Max(p, q)", "Add(p, q)")


def test_elements_at_every_place_are_the_whole():
    becomes(form(GATHERED, x="b,t"), "return x.unsqueeze((1, 2))")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Concat<axis=-1>(pu, qu)", "Concat<axis=-1>(qu, pu)"),
        ("b = Range(z, n1, o)", "b = Range(o, n1, o)"),
        ("a = Range(z, n0, o)", "t = Constant<value_int=2>() a = Range(z, t, o)"),
    ],
    ids=["axes change places", "from the second on", "some rows only"],
)
def test_other_places_are_gathered(old, new):
    assert old in GATHERED
    model = form(GATHERED.replace(old, new), x="4,4")
    stays(model, "return x.unsqueeze")


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
    assert f"scaled_dot_product_attention({line})" in source.replace("mask=", "")


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
