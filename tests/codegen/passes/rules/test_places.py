"""Elements at places that are given axis by axis."""

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


ROWS = """sh = Shape(x) z = Constant<value_int=0>() o = Constant<value_int=1>()
    n = Gather(sh, z) r = Range(z, n, o) t = Gather(sh, o) m = Mul(r, t)
    i = Add(at, m) f = Flatten<axis=2>(x) y = Gather(f, i)"""
JOINED = """l = Constant<value_ints=[-1]>()
    a = Unsqueeze(rows, l) b = Unsqueeze(columns, l)
    i = Concat<axis=-1>(a, b) y = GatherND(x, i)"""


def test_places_counted_through_flat_axes():
    rows = {
        "x": np.arange(24.0, dtype="float32").reshape(2, 3, 4),
        "at": np.array([2, 0]),
    }
    source = becomes(form(ROWS, x="b,t,4", at="int64[b]"), feeds=rows)
    assert 'return x[Tensor.arange(x.shape[0], dtype="int64", ' in source


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("t = Gather(sh, o)", "two = Constant<value_int=2>() t = Gather(sh, two)"),
        ("Flatten<axis=2>(x)", "Flatten<axis=1>(x)"),
        ("m = Mul(r, t)", "m = Add(r, t)"),
    ],
    ids=["in other steps", "one axis only", "no product"],
)
def test_places_that_are_counted_otherwise(old, new):
    assert old in ROWS
    rows = {
        "x": np.arange(24.0, dtype="float32").reshape(2, 3, 4),
        "at": np.array([0, 0]),
    }
    model = form(ROWS.replace(old, new), x="2,3,4", at="int64[2]")
    if "axis=1" in new:
        rows["at"] = np.array([0, -2])
    stays(model, "x[", feeds=rows)


def test_joined_places_are_an_index():
    places = {"rows": np.array([[1], [0]]), "columns": np.array([[2], [1]])}
    x = np.arange(24.0, dtype="float32").reshape(2, 3, 4)
    model = form(JOINED, x="2,3,4", rows="int64[2,1]", columns="int64[2,1]")
    becomes(model, "return x[rows, columns]", feeds={"x": x, **places})


def test_a_batchs_own_places_are_gathered():
    text = JOINED.replace("GatherND(", "GatherND<batch_dims=1>(")
    places = {"rows": np.array([[1], [0]]), "columns": np.array([[2], [1]])}
    x = np.arange(24.0, dtype="float32").reshape(2, 3, 4)
    model = form(text, x="2,3,4", rows="int64[2,1]", columns="int64[2,1]")
    stays(model, "x[", feeds={"x": x, **places})


SMALL = """n = Cast<to=6>(i) w = Cast<to=7>(n) c = Constant<value_int=3>()
    e = Equal(w, c) f = Cast<to=1>(e) g = Gather(table, i)
    u = Constant<value_ints=[-1]>() h = Unsqueeze(f, u) y = Add(g, h)"""


@pytest.mark.parametrize("compared", ["w", "n"])
def test_numbers_of_rows_are_small(compared):
    table = np.arange(20, dtype=np.float32).reshape(5, 4) + 0.5
    text = SMALL.replace("Equal(w, c)", f"Equal({compared}, c)")
    text = text.replace("c = Constant<value_int=3>()", CONSTANT[compared])
    model = form(text, i="int64[6]", weights={"table": table})
    source = stays(model, "int32", feeds={"i": np.array([0, 3, 4, 1, 3, 2])})
    assert "i == 3" in source


CONSTANT = {
    "w": "c = Constant<value_int=3>()",
    "n": "c = Constant<value=int32 {3}>()",
}


def test_other_numbers_are_cast():
    model = form("n = Cast<to=6>(i) w = Cast<to=7>(n) y = Cast<to=1>(w)", i="int64[3]")
    source = becomes(model, feeds={"i": np.array([1, 2**32 + 3, -5])})
    assert '"int32"' in source
