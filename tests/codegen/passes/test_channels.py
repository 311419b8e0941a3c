"""Channels-last graphs of TensorFlow's exporters become channels-first."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.passes.forms import becomes, form, stays
from tests.harness.source import source_of

RANDOM = np.random.default_rng(0)


def made(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


IN, OUT = "Transpose<perm=[0,3,1,2]>", "Transpose<perm=[0,2,3,1]>"
TWICE = f"""a = {IN}(x) b = Conv(a, v) c = {OUT}(b) {{}} e = {IN}(d) f = Conv(e, w)
    y = {OUT}(f)"""
CONVS = {"v": made(4, 3, 1, 1), "w": made(2, 4, 1, 1)}
BETWEEN = {
    "activation": ("d = Relu(c)", "ops.relu(self.conv1("),
    "author's factor": (
        "d = Mul(c, gain)",
        "self.gain = nn.Param(nn.init.normal(0.02), (1, 4, 1, 1))",
    ),
    "factor of all axes": ("d = Mul(c, place)", "(1, 4, 5, 6)"),
    "sum of two": ("r = Relu(c) d = Add(c, r)", "b + ops.relu(b)"),
    "softmax": ("d = Softmax(c)", "axis=1"),
    "padding": (
        "p = Constant<value_ints=[0,1,0,0,0,0,2,0]>() d = Pad(c, p)",
        "pad_width=((0, 0), (0, 0), (1, 0), (0, 2))",
    ),
    "halves": (
        "g, h = Split<axis=3, num_outputs=2>(c) d = Concat<axis=-1>(h, g)",
        "axis=1)",
    ),
    "slice": (
        """i = Constant<value_ints=[1]>() j = Constant<value_ints=[5]>()
        k = Constant<value_ints=[2]>() d = Slice(c, i, j, k)""",
        "[..., 1:5]",
    ),
    "excitation": (
        """k = Constant<value_ints=[1,2]>() m = ReduceMean(c, k) s = Sigmoid(m)
        d = Mul(c, s)""",
        "mean((2, 3), keepdims=True)",
    ),
}


@pytest.mark.parametrize(("text", "part"), BETWEEN.values(), ids=BETWEEN)
def test_between_convolutions(text, part):
    weights = {**CONVS, "gain": made(4), "place": made(5, 6, 4)}
    model = form(TWICE.format(text), weights=weights, x="batch,5,6,3")
    source = becomes(model)
    assert source.count("transpose(") == 2, source
    assert part in source, source


def test_padding_of_old_opsets_has_no_second_input():
    text = TWICE.format("d = Pad<pads=[0,1,0,0,0,0,2,0]>(c)")
    becomes(form(text, opset=10, weights=CONVS, x="batch,5,6,3"))


OLD_SOFTMAX = {
    "along the last axis": ("Softmax<axis=3>", "axis=1)", 2),
    "along the last axis, counted from it": ("LogSoftmax<axis=-1>", "axis=1)", 2),
    "of rows of all axes": ("Softmax", ".flatten(1)", 4),
    "of rows of two axes": ("Softmax<axis=2>", ".flatten(2)", 4),
}


@pytest.mark.oracle("onnxruntime")
@pytest.mark.parametrize(
    ("softmax", "part", "turns"), OLD_SOFTMAX.values(), ids=OLD_SOFTMAX
)
def test_softmax_of_old_opsets(tmp_path, softmax, part, turns):
    """Beside onnxruntime: ONNX's own evaluator knows the newest meaning alone."""
    import onnxruntime

    text = TWICE.format(f"d = {softmax}(c)")
    model = form(text, opset=12, weights=CONVS, x="batch,5,6,3")
    source, module = source_of(model, tmp_path)
    assert part in source, source
    assert source.count("transpose(") == turns, source
    session = onnxruntime.InferenceSession(model.SerializeToString())
    x = made(2, 5, 6, 3)
    (expected,) = session.run(None, {"x": x})
    np.testing.assert_allclose(np.asarray(module(x)), expected, 1e-5, 1e-6)


def test_what_needs_channels_last_has_them_last():
    text = f"""a = {IN}(x) b = Conv(a, v) c = {OUT}(b) r = Relu(c)
        y = LayerNormalization(r, s, s)"""
    source = becomes(form(text, weights={**CONVS, "s": made(4)}, x="batch,5,6,3"))
    assert source.count("transpose(") == 2


def test_means_of_places_need_no_transpose():
    text = f"""b = Conv(x, v) c = {OUT}(b) r = Relu(c) k = Constant<value_ints=[1,2]>()
        y = ReduceMean<keepdims=0>(r, k)"""
    model = form(text, weights=CONVS, x="batch,3,5,6")
    becomes(model, "return ops.relu(self.conv(x)).mean((2, 3))")


def test_an_input_is_turned_at_once():
    text = f"""p = Constant<value_ints=[0,1,1,0,0,1,1,0]>() q = Pad(x, p) a = {IN}(q)
        y = Conv(a, v)"""
    source = becomes(form(text, weights=CONVS, x="batch,5,6,3"))
    assert "ops.pad(x.transpose(0, 3, 1, 2), pad_width=" in source


def test_an_output_keeps_its_name():
    text = f"a = {IN}(x) b = Conv(a, v) c = {OUT}(b) y = Sigmoid(c)"
    source = becomes(form(text, weights=CONVS, x="batch,5,6,3"))
    assert source.startswith('"""x -> y')
    assert source.count("transpose(") == 2


def test_an_output_that_is_turned_back():
    text = f"b = Conv(x, v) c = {OUT}(b) d = Sigmoid(c) y = {IN}(d)"
    source = becomes(form(text, weights=CONVS, x="batch,3,5,6"))
    assert "transpose" not in source


CONV = "a = Conv(x, v)"
BEHIND = {
    "bias": ("y = Add(a, p__1)", "nn.Conv2d(3, 4, 1)"),
    "the author's bias": ("y = Add(a, p)", "nn.Conv2d(3, 4, 1)"),
    "folded normalisation": (
        "b = Sub(a, p__1) c = Mul(b, q__1) y = Add(c, p__2)",
        "nn.Conv2d(3, 4, 1)",
    ),
    "divided": ("y = Div(a, q__1)", "nn.Conv2d(3, 4, 1, bias=False)"),
}


@pytest.mark.parametrize(("text", "line"), BEHIND.values(), ids=BEHIND)
def test_behind_a_layer(text, line):
    names = ("p__1", "q__1", "p__2", "p", "gain")
    weights = {"v": made(4, 3, 1, 1)} | {name: 2 + made(4, 1, 1) for name in names}
    weights = {name: array for name, array in weights.items() if name in text + "v"}
    model = form(f"{CONV} {text}", weights=weights, x="batch,3,5,6")
    source = becomes(model)
    assert f"self.conv = {line}" in source, source
    assert "return self.conv(x)" in source, source


def test_a_scale_and_a_bias_behind_a_normalisation():
    """Caffe's Scale layer."""
    weights = {"p__1": made(3, 1, 1), "q__1": 1 + made(3, 1, 1)}
    weights |= {name: made(3) ** 2 + 1 for name in ("g__1", "h__1", "mean", "var")}
    text = "a = BatchNormalization(x, g__1, h__1, mean, var) b = Mul(a, q__1)"
    source = becomes(form(f"{text} y = Add(b, p__1)", weights=weights, x="2,3,5,6"))
    assert "return self.bn(x)" in source, source


@pytest.mark.parametrize(
    "text", ["y = Mul(a, gain)", "b = Relu(a) c = Add(a, p__1) y = Add(b, c)"]
)
def test_what_is_not_the_layers(text):
    weights = {"v": made(4, 3, 1, 1), "gain": made(4, 1, 1), "p__1": made(4, 1, 1)}
    weights = {name: array for name, array in weights.items() if name in text + "v"}
    source = stays(form(f"{CONV} {text}", weights=weights, x="batch,3,5,6"))
    assert "nn.Param(" in source


@pytest.mark.parametrize(
    ("text", "weight", "line"),
    [
        (
            "b = Conv<pads=[0,1,0,1], strides=[1,2]>(a, v)",
            (4, 3, 1, 3),
            "nn.Conv1d(3, ",
        ),
        ("b = ConvTranspose<strides=[1,2]>(a, v)", (3, 4, 1, 3), "nn.ConvTranspose1d("),
        ("b = MaxPool<kernel_shape=[1,2]>(a)", None, "ops.max_pool(x, kernel_size=2"),
    ],
)
def test_layers_of_sequences(text, weight, line):
    weights = {} if weight is None else {"v": made(*weight)}
    around = (
        f"k = Constant<value_ints=[2]>() a = Unsqueeze(x, k) {text} y = Squeeze(b, k)"
    )
    source = becomes(form(around, weights=weights, x="batch,3,8"))
    assert line in source
    assert "squeeze" not in source


@pytest.mark.parametrize("last", ["y = MatMul(f, w)", "y = Gemm<transB=1>(f, w)"])
def test_a_matrix_behind_an_image(last):
    text = f"""b = Conv(x, v) c = {OUT}(b) s = Constant<value_ints=[-1,120]>()
        f = Reshape(c, s) {last}"""
    shape = (120, 2) if "MatMul" in last else (2, 120)
    weights = {"v": CONVS["v"], "w": made(*shape)}
    source = becomes(form(text, weights=weights, x="batch,3,5,6"))
    assert "self.linear(ops.flatten(self.conv(x), 1))" in source


def test_a_slope_below_zero():
    text = "a = Relu(x) n = Neg(x) b = Relu(n) c = Mul(b, p) y = Add(a, c)"
    model = form(text, weights={"p": made(4, 1, 1)}, x="batch,4,5,6")
    assert "nn.PReLU(num_parameters=4)" in becomes(model)


@pytest.mark.parametrize(
    ("perm", "back"), [([1, 2, 3, 0], [3, 0, 1, 2]), ([0, 2, 1, 3], [0, 2, 1, 3])]
)
def test_arithmetic_that_is_turned_and_turned_back(perm, back):
    text = f"""a = Transpose<perm={perm}>(x) t = Constant<value_float=3.0>()
        c = Pow(a, t) s = Tanh(a) m = Mul(s, c) z = Transpose<perm={back}>(m)
        y = Add(z, x)"""
    becomes(form(text, x="2,3,5,4"), "return ops.tanh(x) * x**3 + x")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("b = Tanh(a) r = Transpose<perm=[1,2,3,0]>(b) y = Add(r, b)", 2),
        ("b = Add(a, z) y = Transpose<perm=[3,0,1,2]>(b)", 2),
        ("b = Softmax(a) y = Transpose<perm=[3,0,1,2]>(b)", 2),
    ],
)
def test_what_is_read_as_it_is_stays_turned(text, count):
    model = form(f"a = Transpose<perm=[1,2,3,0]>(x) {text}", x="2,2,2,2", z="2,2,2,2")
    assert becomes(model).count("transpose(") == count


def test_weights_of_arithmetic_that_is_turned():
    text = """a = Transpose<perm=[1,2,3,0]>(x) b = Mul(a, s)
        y = Transpose<perm=[3,0,1,2]>(b)"""
    source = becomes(form(text, x="2,3,5,4", weights={"s": made(5, 1, 2)}))
    assert "x.transpose" not in source
