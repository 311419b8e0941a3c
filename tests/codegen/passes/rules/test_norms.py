"""Norms that exporters write in pieces, and what only looks like one."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.passes.forms import becomes, form, stays

RANDOM = np.random.default_rng(0)
START = """m = ReduceMean<axes={axes}>(x) d = Sub(x, m) q = Mul(d, d)
    v = ReduceMean<axes={axes}>(q) e = Constant<value_float=0.001>() a = Add(v, e)
    r = Sqrt(a) i = Reciprocal(r)"""
ENDS = {
    "scale behind": "n = Mul(d, i) k = Mul(n, w) y = Add(k, b)",
    "scale before the root": "n = Mul(d, w) k = Div(n, r) y = Add(b, k)",
    "scale of the root": "n = Mul(i, w) k = Mul(n, d) y = Add(k, b)",
    "scale over the root": "n = Div(w, r) k = Mul(d, n) y = Add(k, b)",
    "mean apart": """f = Mul(w, i) g = Mul(x, f) h = Mul(m, f) k = Sub(b, h)
        y = Add(g, k)""",
    "mean taken first": """f = Mul(i, w) g = Mul(f, x) h = Mul(f, m) k = Sub(g, h)
        y = Add(k, b)""",
    "mean taken last": """f = Mul(i, w) g = Mul(f, x) h = Mul(f, m) k = Add(g, b)
        y = Sub(k, h)""",
    "mean below zero": """f = Mul(i, w) g = Mul(f, x) h = Mul(f, m) n = Neg(h)
        k = Add(n, b) y = Add(g, k)""",
}


def weights(*shape):
    return {name: RANDOM.standard_normal(shape).astype(np.float32) for name in "wb"}


def norm(end, shape, axes="[-1]", start=START, x="batch,5,8"):
    text = f"{start.format(axes=axes)} {end}"
    return form(text, opset=17, weights=weights(*shape), x=x)


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_orders_of_factors(end):
    source = becomes(norm(end, (8,)), "self.norm = nn.LayerNorm(8, eps=0.001)")
    assert "return self.norm(x)" in source, source


def test_the_mean_of_squares_less_the_square_of_the_mean():
    start = """m = ReduceMean<axes={axes}>(x) d = Sub(x, m) q = Mul(x, x)
        p = ReduceMean<axes={axes}>(q) o = Mul(m, m) v = Sub(p, o)
        z = Constant<value_float=0.0>() l = Max(v, z)
        e = Constant<value_float=0.001>() a = Add(l, e) r = Sqrt(a) i = Reciprocal(r)"""
    model = norm(ENDS["scale of the root"], (8,), start=start)
    becomes(model, "self.norm = nn.LayerNorm(8, eps=0.001)")


@pytest.mark.parametrize(
    ("axes", "shape", "sizes"),
    [
        ("[1]", (8, 1, 1), "8"),
        ("[1]", (1, 8, 1, 1), "8"),
        ("[-2,-3]", (8, 4, 1), "(8, 4)"),
    ],
)
def test_other_axes_are_turned(axes, shape, sizes):
    model = norm(ENDS["mean apart"], shape, axes, x="batch,8,4,5")
    source = becomes(model, f"self.norm = nn.LayerNorm({sizes}, eps=0.001)")
    assert source.count("transpose(") == 2


def test_squares_of_channels():
    text = """q = Mul(x, x) v = ReduceMean<axes=[1]>(q)
        e = Constant<value_float=0.001>() a = Add(v, e) r = Sqrt(a) i = Reciprocal(r)
        f = Mul(i, w) y = Mul(f, x)"""
    model = form(text, opset=17, weights=weights(8, 1), x="batch,8,5")
    becomes(model, "self.norm = nn.RMSNorm(8, eps=0.001)")


OTHERS = {
    "read elsewhere": (
        f"{ENDS['scale behind'][:-13]} o = Add(k, b) y = Add(o, r)",
        (8,),
    ),
    "one number for all": (ENDS["scale behind"], (1,)),
    "by place": (ENDS["scale behind"], (5, 1)),
    "by place and feature": (ENDS["mean apart"], (5, 8)),
    "of a row more": (ENDS["scale behind"], (1, 1, 1, 8)),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_scales(case):
    stays(norm(*OTHERS[case]), "nn.LayerNorm(")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a = Add(v, e)", "a = Abs(v)"),
        ("value_float=0.001", "value_float=2.0"),
        ("v = ReduceMean<axes={axes}>", "v = ReduceMean<axes=[1]>"),
        ("d = Sub(x, m)", "o = ReduceMean<axes=[1]>(x) d = Sub(x, o)"),
    ],
    ids=["no epsilon", "a large epsilon", "another variance", "another mean"],
)
@pytest.mark.parametrize("end", ["scale of the root", "mean apart"])
def test_other_moments(old, new, end):
    assert old in START
    stays(norm(ENDS[end], (8,), start=START.replace(old, new)), "nn.LayerNorm(8")


def test_the_first_axis_is_no_axis_of_a_norm():
    model = norm(ENDS["scale behind"], (8, 1, 1), "[0]", x="8,4,5")
    stays(model, "nn.LayerNorm(")


GROUPS = f"s = Constant<value_ints=[-1,4,5,2,3]>() x = Reshape(u, s) {START}"


def groups(axes="[1,2,4]", shape=(2, 3), back="[-1,4,5,6]", start=GROUPS):
    end = ENDS["mean apart"].replace("y =", "z =")
    text = f"""{start.format(axes=axes)} {end}
        t = Constant<value_ints={back}>() y = Reshape(z, t)"""
    return form(text, opset=17, weights=weights(*shape), u="batch,4,5,6")


def test_groups_of_last_channels():
    source = becomes(groups(), "self.norm = nn.GroupNorm(2, 6, eps=0.001)")
    assert source.count("transpose(") == 2
    becomes(groups(shape=(1, 1, 1, 2, 3)), "self.norm = nn.GroupNorm(2, 6, eps=0.001)")


@pytest.mark.parametrize(
    "options",
    [
        {"axes": "[1,2,3]"},
        {"axes": "[4]"},
        {"shape": (3,)},
        {"shape": (2, 1)},
        {"back": "[-1,5,4,6]"},
        {"start": GROUPS.replace("-1,4,5,2,3", "-1,2,10,2,3")},
    ],
    ids=str,
)
def test_other_groups(options):
    stays(groups(**options), "nn.GroupNorm(")


UNIT = """a = Constant<value_ints=[-1]>() c = Constant<value_float={0}>()
    q = Mul(x, x) s = ReduceSum(q, a) r = Sqrt(s) i = Reciprocal(r) f = Min(i, c)
    y = Mul(x, f)"""


def test_units_of_a_factor_at_most():
    for most, eps in (("1e12", ""), ("10.0", ", eps=0.1")):
        model = form(UNIT.format(most), x="batch,5,8")
        becomes(model, f"return ops.normalize(x, axis=-1{eps})")
    stays(form(UNIT.format("-1.0"), x="batch,5,8"), "normalize")
