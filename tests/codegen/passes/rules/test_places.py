"""Elements at places that are given axis by axis."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.passes.forms import becomes, form, stays
from tests.harness.reference import needs_onnx

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


MASKED = """m = Greater(a, b) n = NonZero(m) t = Transpose<perm=[1,0]>(n)
    y = GatherND(x, t)"""
MASK = {"a": np.array([0.5, 2.0, 3.0]), "b": np.array([1.0, 1.0, 1.0])}
MASK = {name: array.astype(np.float32) for name, array in MASK.items()}


def test_places_of_a_mask():
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    model = form(MASKED, x="3,4", a="3", b="3")
    becomes(model, "return x[a > b]", feeds={"x": x, **MASK})


def test_places_of_a_mask_that_others_read():
    text = MASKED.replace("y =", "w =") + " v = GatherND(a, t) y = Concat<axis=0>(w, v)"
    model = form(text, x="3", a="3", b="3")
    x = np.arange(3.0, dtype=np.float32)
    becomes(model, "return ops.concat([x[m], a[m]])", feeds={"x": x, **MASK})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("perm=[1,0]", "perm=[0,1]"),
        ("NonZero(m)", "NonZero(a)"),
    ],
    ids=["columns", "numbers"],
)
def test_places_of_no_mask(old, new):
    x = np.arange(27.0, dtype=np.float32).reshape(3, 3, 3)
    model = form(MASKED.replace(old, new), x="3,3,3", a="3", b="3")
    stays(model, "x[", feeds={"x": x, **MASK})


@pytest.mark.parametrize(
    ("sizes", "mask"), [("5,4", (3,)), ("n,4", (3,)), ("3,4", (3, 2)), ("3,4", (3, 1))]
)
def test_places_of_a_mask_of_a_part(sizes, mask):
    """A mask in NumPy is as long as the axes that it indexes."""
    x = np.arange(20.0, dtype=np.float32).reshape(5, 4)[: 3 if sizes[0] == "3" else 5]
    a = np.resize(np.array([2, 0, 3], np.float32), mask)
    text = ",".join(map(str, mask))
    model = form(MASKED, x=sizes, a=text, b=text)
    stays(model, "x[", feeds={"x": x, "a": a, "b": np.ones_like(a)})


@pytest.mark.parametrize(
    ("axes", "line"), [(1, "return x[:, 2]"), (-1, "return x[:, 2]")]
)
def test_one_place_in_a_list(axes, line):
    text = f"""i = Constant<value_ints=[2]>() g = Gather<axis={axes}>(x, i)
        d = Constant<value_ints=[1]>() y = Squeeze(g, d)"""
    becomes(form(text, x="2,4"), line)


@pytest.mark.parametrize(
    ("place", "line"), [(2, "return x[:, 2:3]"), (0, "return x[:, :1]")]
)
def test_a_list_of_one_place_is_a_slice(place, line):
    text = f"i = Constant<value_ints=[{place}]>() y = Gather<axis=1>(x, i)"
    becomes(form(text, x="2,4"), line)


def test_another_axis_is_dropped():
    text = """i = Constant<value_ints=[2]>() g = Gather<axis=1>(x, i)
        d = Constant<value_ints=[0]>() y = Squeeze(g, d)"""
    becomes(form(text, x="1,4"), "return x[:, 2:3].squeeze(0)")


FLOORED = """z = Constant<value_int=0>() o = Constant<value_int=1>()
    q = Div(a, b) la = Less(a, z) lb = Less(b, z) x = Xor(la, lb) m = Mod(a, b)
    e = Equal(m, z) ne = Not(e) f = And(x, ne) s = Sub(q, o)
    w = Where(f, s, q) y = Cast<to=1>(w)"""
SIGNED = {"a": np.array([7, -7, 7, -7, 6, -6]), "b": np.array([2, 2, -2, -2, 3, 3])}


def test_floor_division():
    model = form(FLOORED, a="int64[6]", b="int64[6]")
    source = becomes(model, feeds=SIGNED)
    assert "a // b" in source


@pytest.mark.parametrize(
    ("divisor", "floored"), [(5, True), (-5, False)], ids=["above 0", "below 0"]
)
@pytest.mark.parametrize("sign", ["False", "none"])
def test_floor_division_by_a_number(divisor, floored, sign):
    """An exporter that knows the divisor's sign folds its comparison."""
    text = FLOORED.replace("lb = Less(b, z)", "lb = Constant<value=bool {0}>()")
    text = text.replace("Xor(la, lb)", "Identity(la)") if sign == "none" else text
    text = f"b = Constant<value_int={divisor}>() {text}"
    model = form(text, a="int64[6]")
    source = becomes(model, feeds={"a": SIGNED["a"]})
    assert ("a // 5" in source) == floored


def test_other_corrections_of_a_quotient():
    model = form(
        FLOORED.replace("Xor(la, lb)", "Or(la, lb)"), a="int64[6]", b="int64[6]"
    )
    stays(model, "//", feeds=SIGNED)


@pytest.mark.parametrize(
    ("axis", "parts", "same"),
    [(1, "p, q", True), (-1, "p, q", True), (1, "q, p", False), (0, "p, q", False)],
)
def test_parts_joined_again(axis, parts, same):
    text = f"p, q = Split<axis=1, num_outputs=2>(x) w = Concat<axis={axis}>({parts})"
    source = becomes(form(f"{text} y = Relu(w)", x="2,4"))
    assert ("split" not in source) == same


@pytest.mark.parametrize(
    ("op", "words"), [("ReduceMin", "min(300, x.shape[0])"), ("ReduceMax", "max(")]
)
def test_the_smaller_of_sizes(op, words):
    text = f"""k = Constant<value_ints=[300]>() s = Shape<start=0, end=1>(x)
        c = Concat<axis=0>(k, s) m = {op}<keepdims=0>(c) o = Constant<value_ints=[1]>()
        r = Reshape(m, o) y = Expand(z, r)"""
    source = becomes(form(text, x="n", z="1"))
    assert words in source


EMPTY = pytest.param(", axes", marks=needs_onnx(1, 20, "reductions over empty axes"))


@pytest.mark.parametrize("op", ["ReduceMin", "ReduceMax", "ReduceProd"])
@pytest.mark.parametrize("axes", ["", EMPTY], ids=["none", "empty"])
def test_sizes_reduced_over_no_axis(op, axes):
    text = f"""k = Constant<value_ints=[300]>() s = Shape<start=0, end=1>(x)
        c = Concat<axis=0>(k, s) axes = Constant<value=int64[0] {{}}>()
        m = {op}<noop_with_empty_axes=1>(c{axes}) y = Cast<to=1>(m)"""
    becomes(form(text, x="n"))
