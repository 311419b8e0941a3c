"""Functions that exporters spell out are called by their names again."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.passes.forms import becomes, form, stays

IMAGE = "2,8,6,4"
HALF = "h = Constant<value_float=0.5>()"
ZERO = "z = Constant<value_float=0.0>()"
SIX = """three = Constant<value_float=3.0>() z = Constant<value_float=0.0>()
    six = Constant<value_float=6.0>() a = Add(x, three) c = Clip(a, z, six)"""
SIGMOID = """one = Constant<value_float=1.0>() n = Neg(x) e = Exp(n) s = Add(e, one)"""
LENGTH = """ax = Constant<value_ints=[-1]>() n = ReduceL2(x, ax)
    e = Constant<value_float=1e-12>()"""
SUMS = """ax = Constant<value_ints=[-1]>() p = Mul(x, b)
    d = ReduceSum<keepdims=0>(p, ax) xx = Mul(x, x) bb = Mul(b, b)
    p1 = ReduceSum<keepdims=0>(xx, ax) p2 = ReduceSum<keepdims=0>(bb, ax)
    pp = Mul(p1, p2) l = Sqrt(pp)"""
SPREAD = """ax = Constant<value_ints=[-1]>() m = ReduceMean(x, ax) c = Sub(x, m)
    s = Mul(c, c) v = ReduceMean<keepdims=0>(s, ax)"""
COUNT = """n = Constant<value_float=8.0>() l = Constant<value_float=7.0>()
    vn = Mul(v, n) w = Div(vn, l)"""
ROLL = """zero = Constant<value_ints=[0]>() s = Constant<value_ints=[{0}]>()
    end = Constant<value_ints=[9223372036854775807]>() a = Constant<value_ints=[1]>()
    t = Slice(x, s, end, a) h = Slice(x, zero, s, a) y = Concat<axis=1>(t, h)"""
POWERS = """ax = Constant<value_ints=[1]>() m = ReduceMax(x, ax) d = Sub(x, m)
    e = Exp(d) s = ReduceSum(e, ax) y = Div(e, s)"""
BESIDE = """to = Constant<value_ints=[0,1,{0},6,4]>()
    pads = Constant<value_ints=[0,0,{1},0,0,0,0,{2},0,0]>()
    two = Constant<value_ints=[1]>() alpha = Constant<value_float=0.001>()
    k = Constant<value_float=2.0>() beta = Constant<value_float=0.75>()
    q = Mul(x, x) i = Reshape(q, to) p = Pad(i, pads)
    m = AveragePool<kernel_shape=[{3},1,1]>(p) b = Squeeze(m, two)
    f = Mul(b, alpha) g = Add(f, k) r = Pow(g, beta) y = Div(x, r)"""
PIXELS = """a = Constant<value_ints=[{}]>() b = Constant<value_ints=[{}]>()
    r = Reshape(x, a) t = Transpose<perm=[{}]>(r) y = Reshape(t, b)"""
CHUNKS = "a, b = Split<axis=1, num_outputs=2>(x) s = Sigmoid({1}) y = Mul({0}, s)"


def roll(cut):
    return ROLL.format(cut)


def beside(size, before, after, channels=8):
    return BESIDE.format(channels, before, after, size)


def pixels(parts, after, perm):
    return PIXELS.format(parts, after, perm)


SHUFFLE = ("0,2,4,6,4", "0,8,6,4", "0,2,1,3,4")
FORMS = {
    "sigmoid": (f"{SIGMOID} y = Div(one, s)", "ops.sigmoid(x)"),
    "sigmoid as a reciprocal": (f"{SIGMOID} y = Reciprocal(s)", "ops.sigmoid(x)"),
    "silu": (f"{SIGMOID} y = Div(x, s)", "ops.silu(x)"),
    "hard sigmoid": (f"{SIX} y = Div(c, six)", "self.hardsigmoid(x)"),
    "log sigmoid": ("s = Sigmoid(x) y = Log(s)", "ops.log_sigmoid(x)"),
    "minus softplus": ("a = Neg(x) b = Softplus(a) y = Neg(b)", "ops.log_sigmoid(x)"),
    "softsign": (
        "one = Constant<value_float=1.0>() a = Abs(x) b = Add(a, one) y = Div(x, b)",
        "ops.softsign(x)",
    ),
    "softplus": (
        "one = Constant<value_float=1.0>() e = Exp(x) a = Add(e, one) y = Log(a)",
        "ops.softplus(x)",
    ),
    "steep softplus": (
        """b = Constant<value_float=2.0>() c = Constant<value_float=2.0>()
        a = Mul(x, b) s = Softplus(a) y = Div(s, c)""",
        "self.softplus = nn.Softplus(beta=2.0)",
    ),
    "hard shrink": (
        f"{HALF} {ZERO} a = Abs(x) c = LessOrEqual(a, h) y = Where(c, z, x)",
        "ops.shrink(x)",
    ),
    "soft shrink": (
        f"""{HALF} {ZERO} m = Constant<value_float=-0.5>()
        o = Constant<value_float=0.5>() g = Greater(x, h) a = Sub(x, o)
        p = Where(g, a, z)
        l = Less(x, m) b = Add(x, o) n = Where(l, b, z) y = Add(p, n)""",
        "ops.shrink(x, bias=0.5)",
    ),
    "glu": (CHUNKS.format("a", "b"), "ops.glu(x, axis=1)"),
    "softmax": (POWERS, "ops.softmax(x, axis=-3)"),
    "log softmax": ("a = Softmax(x) y = Log(a)", "ops.log_softmax(x)"),
    "normalize": (
        f"{LENGTH} m = Clip(n, e) y = Div(x, m)",
        "ops.normalize(x, axis=-1)",
    ),
    "normalize by max": (
        f"{LENGTH} m = Max(n, e) y = Div(x, m)",
        "ops.normalize(x, axis=-1)",
    ),
    "normalize by a root": (
        """ax = Constant<value_ints=[-1]>() e = Constant<value_float=1e-12>()
        q = Mul(x, x) s = ReduceSum(q, ax) m = Max(s, e) r = Sqrt(m)
        i = Reciprocal(r) y = Mul(x, i)""",
        "ops.normalize(x, axis=-1, eps=1e-6)",
    ),
    "variance": (f"{SPREAD} y = Identity(v)", "x.var(-1)"),
    "standard deviation": (f"{SPREAD} y = Sqrt(v)", "x.std(-1)"),
    "roll to the front": (roll(3), "x.roll(-3, 1)"),
    "roll to the back": (roll(-1), "x.roll(1, 1)"),
    "local response": (beside(3, 1, 1), "nn.LocalResponseNorm(3, alpha=0.001, k=2.0)"),
    "local response of 4": (beside(4, 2, 1), "nn.LocalResponseNorm(4, "),
    "pixel shuffle": (
        pixels("0,2,2,2,6,4", "0,2,12,8", "0,1,4,2,5,3"),
        "nn.PixelShuffle(2)",
    ),
    "pixel unshuffle": (
        pixels("0,8,3,2,2,2", "0,32,3,2", "0,1,3,5,2,4"),
        "nn.PixelUnshuffle(2)",
    ),
    "channel shuffle": (pixels(*SHUFFLE), "nn.ChannelShuffle(2)"),
}


@pytest.mark.parametrize(("text", "line"), FORMS.values(), ids=FORMS)
def test_forms(text, line):
    source = becomes(form(text, opset=18, x=IMAGE))
    assert line in source, source


def test_two_vectors():
    eps = "e = Constant<value_float=1e-8>()"
    model = form(f"{SUMS} {eps} m = Max(l, e) y = Div(d, m)", x="2,3,8", b="2,3,8")
    becomes(model, "return ops.cosine_similarity(x, b, axis=-1)")


def test_variance_of_a_sample():
    becomes(
        form(f"{SPREAD} {COUNT} y = Sqrt(w)", x="2,8"), "return x.std(-1, correction=1)"
    )
    other = COUNT.replace("8.0", "9.0")
    stays(form(f"{SPREAD} {other} y = Sqrt(w)", x="2,8"), "correction")


TWO_ROLLS = """zero = Constant<value_ints=[0]>() last = Constant<value_ints=[-1]>()
    end = Constant<value_ints=[9223372036854775807]>() two = Constant<value_ints=[2]>()
    one = Constant<value_ints=[1]>() t = Slice(x, last, end, one)
    h = Slice(x, zero, last, one) u = Concat<axis=1>(t, h) v = Slice(u, two, end, two)
    w = Slice(u, zero, two, two) y = Concat<axis=2>(v, w)"""


def test_rolls_of_two_axes_are_one():
    becomes(form(TWO_ROLLS, x="2,5,7"), "return x.roll((1, -2), (1, -1))")


NEAR_MISSES = {
    "other halves": (CHUNKS.format("b", "a"), "glu"),
    "shrunk by another": (
        f"""{HALF} {ZERO} q = Constant<value_float=0.25>() a = Abs(x)
        c = Greater(a, h) s = Sign(x) m = Mul(s, q) d = Sub(x, m) y = Where(c, d, z)""",
        "shrink",
    ),
    "shrunk to another": (
        f"""{HALF} g = Constant<value_float=0.25>() a = Abs(x) c = Greater(a, h)
        y = Where(c, x, g)""",
        "shrink",
    ),
    "the sum of all": (POWERS.replace("ReduceSum(e, ax)", "ReduceSum(e)"), "softmax"),
    "held below a number as well": (
        f"{LENGTH} t = Constant<value_float=0.5>() m = Clip(n, e, t) y = Div(x, m)",
        "normalize",
    ),
    "not all of the axis": (roll(3).replace("9223372036854775807", "5"), "roll"),
    "more around": (beside(3, 2, 0), "LocalResponseNorm"),
    "parted alike in another order": (
        pixels("0,8,3,2,2,2", "0,32,3,2", "0,3,5,1,2,4"),
        "PixelUnshuffle",
    ),
    "parted unlike": (
        pixels("0,8,2,3,2,2", "0,48,2,2", "0,1,3,5,2,4"),
        "PixelUnshuffle",
    ),
    "time in parts": (
        pixels("0,4,2,6,4", "0,8,4,6", "0,2,1,3,4"),
        "ChannelShuffle",
    ),
}


@pytest.mark.parametrize(("text", "word"), NEAR_MISSES.values(), ids=NEAR_MISSES)
def test_near_misses(text, word):
    stays(form(text, opset=18, x=IMAGE), word)


HALVES = """l = Constant<value_ints=[-1]>() o = Constant<value_ints=[0]>()
    m = Constant<value_ints=[{1}]>() e = Constant<value_ints=[{2}]>()
    a = Slice({0}, o, m, l) b = Slice({0}, m, e, l) n = Neg(b)
    j = Concat<axis=-1>(n, a) c = Mul({0}, cos) s = Mul(j, sin)"""
PAIRS = """l = Constant<value_ints=[-1]>() o = Constant<value_ints=[0]>()
    one = Constant<value_ints=[1]>() two = Constant<value_ints=[2]>()
    e = Constant<value_ints=[9999]>() a = Slice(x, o, e, l, two)
    b = Slice(x, one, e, l, two) n = Neg(b) nu = Unsqueeze(n, l) au = Unsqueeze(a, l)
    k = Concat<axis=-1>(nu, au) sh = Constant<value_ints=[2,3,5,8]>()
    j = Reshape(k, sh) c = Mul(x, cos) s = Mul(j, sin)"""
PAIRS_OF_ANY = """sp = Shape(k) zero = Constant<value_ints=[0]>()
    three = Constant<value_ints=[3]>() lead = Slice(sp, zero, three, zero)
    sh = Concat<axis=0>(lead, l)"""
FIRST = """z = Constant<value_ints=[0]>() w = Constant<value_ints=[4]>()
    q = Constant<value_ints=[8]>() f = Constant<value_ints=[3]>()
    p = Slice(x, z, w, f) r = Slice(x, w, q, f)"""
ROTARY = {
    "halves": (HALVES.format("x", 4, 8), 8, ""),
    "halves to the end": (HALVES.format("x", 4, 9223372036854775807), 8, ""),
    "neighbours": (PAIRS, 8, ", interleaved=True"),
    "neighbours of any sizes": (
        PAIRS.replace("sh = Constant<value_ints=[2,3,5,8]>()", PAIRS_OF_ANY),
        8,
        ", interleaved=True",
    ),
    "the first columns": (f"{FIRST} {HALVES.format('p', 2, 4)}", 4, ""),
}


@pytest.mark.parametrize(("text", "width", "option"), ROTARY.values(), ids=ROTARY)
def test_rotary_positions(text, width, option):
    last = "t = Add(c, s) y = Concat<axis=-1>(t, r)" if width == 4 else "y = Add(c, s)"
    shape = "b,h,5,8" if PAIRS_OF_ANY in text else "2,3,5,8"
    model = form(f"{text} {last}", x=shape, cos=f"5,{width}", sin=f"1,5,{width}")
    becomes(model, f"return ops.rotary_embedding(x, cos, sin{option})")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Concat<axis=-1>(n, a)", "Concat<axis=-1>(a, n)"),
        ("Slice(x, o, m, l)", "Slice(cos, o, m, l)"),
        ("n = Neg(b)", "n = Neg(a)"),
    ],
)
def test_other_turns(old, new):
    assert old in HALVES.format("x", 4, 8)
    text = HALVES.format("x", 4, 8).replace(old, new)
    model = form(f"{text} y = Add(c, s)", x="2,3,5,8", cos="2,3,5,8", sin="5,8")
    stays(model, "rotary")


MOMENTS = """m = {0} n = Neg(m) d = Sub(x, m) q = Mul(d, d) v = {1}
    e = Constant<value_float=0.001>() a = Add(v, e) r = Sqrt(a) i = Reciprocal(r)
    f = Mul(i, scale) g = Mul(x, f) h = Mul(n, f) b = Add(h, bias) y = Add(g, b)"""
MEANS = {
    "pools": ("GlobalAveragePool(x)", "GlobalAveragePool(q)"),
    "means": ("ReduceMean<axes=[-1]>(x)", "ReduceMean<axes=[-1]>(q)"),
}


@pytest.mark.parametrize("means", MEANS.values(), ids=MEANS)
@pytest.mark.parametrize("shape", [(8,), (1, 1, 8)])
def test_moments(means, shape):
    weights = {name: np.ones(shape, np.float32) / 3 for name in ("scale", "bias")}
    model = form(MOMENTS.format(*means), opset=17, weights=weights, x="batch,5,8")
    becomes(model, "self.norm = nn.LayerNorm(8, eps=0.001)", "return self.norm(x)")


def test_scaled_roots_of_squares():
    text = """q = Mul(x, x) v = ReduceMean<axes=[-1]>(q)
        e = Constant<value_float=1e-6>() a = Add(v, e) r = Sqrt(a) i = Reciprocal(r)
        f = Mul(i, scale) y = Mul(x, f)"""
    model = form(text, opset=17, weights={"scale": SCALE}, x="batch,5,8")
    becomes(model, "self.norm = nn.RMSNorm(8, eps=1e-6)", "return self.norm(x)")


SCALE = np.arange(1, 9, dtype=np.float32)
HEADS = """s = Constant<value_ints=[0,5,2,4]>() m = MatMul(x, w) r = Reshape(m, s)
    y = Add(r, b)"""


def test_a_bias_of_heads():
    weights = {"w": np.eye(8, dtype=np.float32) * 2, "b": SCALE.reshape(2, 4)}
    source = becomes(form(HEADS, weights=weights, x="batch,5,8"))
    assert "self.linear = nn.Linear(8, 8)" in source
    weights["b"] = SCALE[:4]
    assert "bias=False" in becomes(form(HEADS, weights=weights, x="batch,5,8"))


@pytest.mark.parametrize("lead", [1, 2])
def test_a_bias_that_is_one_row(lead):
    row = SCALE.reshape(*[1] * lead, 8)
    weights = {"w": np.eye(8, dtype=np.float32) * 2, "b": row}
    text = "m = MatMul(x, w) y = Add(m, b)"
    source = becomes(form(text, weights=weights, x="batch,8"))
    assert ("self.linear = nn.Linear(8, 8)\n" in source) == (lead == 1), source


@pytest.mark.parametrize("size", [1, 8])
def test_a_bias_of_rows(size):
    """One number for all columns is no layer's."""
    weights = {"w": np.eye(8, dtype=np.float32) * 2, "b": SCALE[:size]}
    weights |= {"rows": [-1, 8], "back": [-1, 5, 8]}
    text = "r = Reshape(x, rows) m = Gemm(r, w, b) y = Reshape(m, back)"
    source = becomes(form(text, weights=weights, x="batch,5,8"))
    assert ("return self.linear(x)" in source) == (size == 8), source


def test_a_row_of_a_scalar():
    weights = {"w": SCALE.reshape(1, 8), "one": [1, 1], "two": [2, 4]}
    text = "r = Reshape(x, one) m = MatMul(r, w) y = Reshape(m, two)"
    source = becomes(form(text, weights=weights, x=""))
    assert ".reshape(2, 4)" in source


def test_a_row_that_is_read_twice():
    weights = {"w": np.eye(8, dtype=np.float32) * 2, "b": SCALE.reshape(1, 8)}
    text = "m = MatMul(x, w) a = Add(m, b) y = Mul(a, b)"
    source = becomes(form(text, weights=weights, x="batch,8"))
    assert "(self.linear(x) + self.b) * self.b" in source, source


def test_a_product_of_merged_axes():
    text = """t = Constant<value_ints=[-1,5,4]>() z = Constant<value_ints=[-1,2,5,5]>()
        a = Reshape(q, t) b = Reshape(k, t) c = Transpose<perm=[0,2,1]>(b)
        d = MatMul(a, c) y = Reshape(d, z)"""
    model = form(text, q="batch,2,5,4", k="batch,2,5,4")
    becomes(model, "return q @ k.mT")
