"""Quantization that the file has is that of layers, and computes what the file says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import burnish
from burnish import Tensor, nn, ops
from burnish.lowbit import Level, QParams, QuantScheme
from burnish.nn.lowbit.input_quantizer import InputQuantizer
from tests.harness.source import source_of

RNG = np.random.default_rng(0)


def whole(*shape: int, low: int = -127) -> np.ndarray:
    return RNG.integers(low, 128, shape).astype(np.int8)


def scales(*shape: int) -> np.ndarray:
    return RNG.uniform(0.01, 0.1, shape).astype(np.float32)


def file(lines: str, shape: tuple[int, ...], **weights: Any) -> onnx.ModelProto:
    """A model of x, from nodes such as `y = Add(x, b)`; attributes behind a colon."""
    nodes = []
    for number, line in enumerate(lines.strip().splitlines()):
        outputs, _, call = line.strip().partition(" = ")
        name, _, rest = call.partition("(")
        inputs, _, attributes_text = rest.partition(")")
        given = [word.strip() for word in inputs.split(",")]
        options = dict(eval(f"dict({attributes_text.strip(' :')})"))
        names = outputs.replace(" ", "").split(",")
        nodes.append(helper.make_node(name, given, names, name=f"n{number}", **options))
    held = [numpy_helper.from_array(np.asarray(a), n) for n, a in weights.items()]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [x], [y], held)
    used = [helper.make_opsetid("", 19)]
    return helper.make_model(graph, opset_imports=used, ir_version=9)


DYNAMIC = """
    q, s, z = DynamicQuantizeLinear(x)
    i = {kind}Integer(q, w, z, wz)
    f = Cast(i): to=1
    sw = Mul(s, ws)
    m = Mul(f, sw)
    y = Add(m, b)
"""
WHOLE_BIAS = """
    {codes}
    u = Mul(s, ws)
    bd = Div(b, u)
    bf = Floor(bd)
    bw = Cast(bf): to=6
    br = Reshape(bw, by)
    i = ConvInteger(q, w, z, wz): pads=[1, 1, 1, 1]
    a = Add(i, br)
    f = Cast(a): to=1
    sw = Mul(s, ws)
    y = Mul(f, sw)
"""
PAIRS = """
    xq = QuantizeLinear(x, s, z)
    xd = DequantizeLinear(xq, s, z)
    wd = DequantizeLinear(w, ws, wz){axis}
    bd = DequantizeLinear(b, bs): axis=0
    h = {kind}(xd, wd, bd)
    hq = QuantizeLinear(h, hs, hz)
    y = DequantizeLinear(hq, hs, hz)
"""
OPERATOR = """
    q = QuantizeLinear(x, s, z)
    h = QLinearConv(q, s, z, w, ws, wz, hs, hz, b)
    y = DequantizeLinear(h, hs, hz)
"""
STEP, ZERO = np.float32(0.02), np.uint8(117)


@pytest.mark.parametrize("columns", [(), (5,)])
@pytest.mark.parametrize("zero", [0, 3])
def test_dynamic_products_sum_whole_numbers(
    tmp_path: Path, columns: tuple[int, ...], zero: int
) -> None:
    weights = {"w": whole(700, 5), "ws": scales(*columns), "b": scales(5)}
    weights["wz"] = np.full(columns, zero, np.int8)
    model = file(DYNAMIC.format(kind="MatMul"), (3, 700), **weights)
    text, made = source_of(model, tmp_path)
    assert "nn.Linear(700, 5)" in text
    x = RNG.normal(size=(3, 700)).astype(np.float32)
    (want,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_array_equal(made(Tensor(x)).numpy(), want)


def test_a_rounding_layer_on_rows_that_become_heads_rounds_once(
    tmp_path: Path,
) -> None:
    rounds = DYNAMIC.replace("(x)", "(rows)").replace("y = ", "flat = ").strip()
    text = f"rows = Reshape(x, two)\n{rounds}\ny = Reshape(flat, heads)"
    weights = {"w": whole(8, 6), "ws": scales(), "wz": np.int8(0), "b": scales(6)}
    shapes = {"two": np.array([6, 8]), "heads": np.array([2, 3, 2, 3])}
    model = file(text.format(kind="MatMul"), (2, 3, 8), **weights, **shapes)
    text, made = source_of(model, tmp_path)
    assert ".linear(x).reshape(2, 3, 2, 3)" in text
    assert "FakeQuantize" not in text
    x = RNG.normal(size=(2, 3, 8)).astype(np.float32)
    (want,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_array_equal(made(Tensor(x)).numpy(), want)


def test_dynamic_convolutions_sum_whole_numbers(tmp_path: Path) -> None:
    weights = {"w": whole(4, 3, 3, 3), "ws": scales(), "wz": np.int8(2)}
    model = file(
        DYNAMIC.format(kind="Conv"), (1, 3, 6, 6), **weights, b=scales(1, 4, 1, 1)
    )
    text, made = source_of(model, tmp_path)
    assert "nn.Conv2d(3, 4, 3)" in text
    x = RNG.normal(size=(1, 3, 6, 6)).astype(np.float32)
    (want,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_array_equal(made(Tensor(x)).numpy(), want)


@pytest.mark.parametrize("columns", [(), (5, 1, 1)])
@pytest.mark.parametrize("is_static", [False, True])
def test_a_bias_that_the_file_rounds_down_is_rounded_by_the_layer(
    tmp_path: Path, columns: tuple[int, ...], is_static: bool
) -> None:
    held: dict[str, Any] = {"w": whole(5, 3, 3, 3), "ws": scales(*columns)}
    held |= {"wz": np.int8(2), "b": RNG.normal(size=5).astype(np.float32) * 9}
    held["by"] = np.array([1, -1, 1, 1])
    codes = "q, s, z = DynamicQuantizeLinear(x)"
    if is_static:
        codes, given = "q = QuantizeLinear(x, s, z)", {"s": STEP, "z": ZERO}
        held |= given
    if columns:
        held["b"] = held["b"].reshape(columns)
    model = file(WHOLE_BIAS.format(codes=codes), (1, 3, 6, 6), **held)
    text, made = source_of(model, tmp_path)
    x = RNG.normal(size=(1, 3, 6, 6)).astype(np.float32)
    (want,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_array_equal(made(Tensor(x)).numpy(), want)
    if columns:
        assert "ops.floor" in text  # not the form that quantizers write
        return
    assert "self.conv = nn.Conv2d(3, 5, 3, padding=1)" in text
    assert "floor" not in text
    np.testing.assert_array_equal(burnish.compile(made)(Tensor(x)).data, want)
    text, _ = source_of(model, tmp_path, dequantize=True)
    assert "nn.Conv2d(3, 5, 3, padding=1)" in text


def static(kind: str) -> onnx.ModelProto:
    ws = scales(4)
    held = {"s": STEP, "z": ZERO, "hs": np.float32(0.3), "hz": np.uint8(0)}
    held |= {"w": whole(4, 3, 3, 3), "ws": ws, "wz": np.zeros(4, np.int8)}
    held |= {"b": RNG.integers(-999, 999, 4).astype(np.int32), "bs": STEP * ws}
    lines = OPERATOR if kind == "QLinearConv" else PAIRS
    if kind == "QLinearConv":
        del held["bs"]
    return file(lines.format(kind="Conv", axis=": axis=0"), (1, 3, 6, 6), **held)


@pytest.mark.parametrize("kind", ["QLinearConv", "pairs"])
def test_pairs_and_operators_are_a_layer_between_roundings(
    tmp_path: Path, kind: str
) -> None:
    model = static(kind)
    text, made = source_of(model, tmp_path)
    assert text.count("nn.Conv2d(3, 4, 3)") == text.count("nn.FakeQuantize()") == 1
    assert "ops.relu" in text  # the least number stands for 0
    x = RNG.normal(size=(1, 3, 6, 6)).astype(np.float32)
    (want,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_array_equal(made(Tensor(x)).numpy(), want)


POOLED = """
    xq = QuantizeLinear(x, s, z)
    xd = DequantizeLinear(xq, s, z)
    p = MaxPool(xd): kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]
    pq = QuantizeLinear(p, s, z)
    pd = DequantizeLinear(pq, s, z)
    wd = DequantizeLinear(w, ws, wz): axis=0
    bd = DequantizeLinear(b, bs): axis=0
    h = Conv(pd, wd, bd): pads=[1, 1, 1, 1]
    y = Sub(h, pd)
"""


def test_a_layer_behind_max_pooling_sums_whole_numbers(tmp_path: Path) -> None:
    held: dict[str, Any] = {"s": STEP, "z": ZERO, "w": whole(64, 64, 3, 3)}
    held |= {"ws": scales(64), "wz": np.zeros(64, np.int8)}
    held |= {"b": np.full(64, 999, np.int32), "bs": STEP * held["ws"]}
    model = file(POOLED, (1, 64, 9, 9), **held)
    text, made = source_of(model, tmp_path)
    assert text.count("nn.FakeQuantize()") == 1
    assert made.conv.on_input is not None
    x = RNG.normal(size=(1, 64, 9, 9)).astype(np.float32)
    y = made(Tensor(x)).data
    codes = np.clip(np.rint(x / STEP) + ZERO, 0, 255).astype(np.float64) - ZERO
    pooled = ops.max_pool(Tensor(codes), kernel_size=3, stride=2, padding=1)
    total = ops.conv(pooled, Tensor(held["w"].astype(np.float64)), padding=1).data + 999
    unit = held["bs"].reshape(-1, 1, 1)
    want = total.astype(np.float32) * unit - pooled.data.astype(np.float32) * STEP
    np.testing.assert_array_equal(y, want)
    np.testing.assert_array_equal(burnish.compile(made)(Tensor(x)).data, want)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_codes_that_are_resized_by_copies_are_those_of_floats(
    tmp_path: Path, mode: str
) -> None:
    lines = f"""
        q = QuantizeLinear(x, s, z)
        r = Resize(q, , sizes): mode="{mode}"
        d = DequantizeLinear(r, s, z)
        y = Sub(d, b)
    """
    held = {"s": STEP, "z": ZERO, "b": scales(3, 1, 1)}
    held["sizes"] = np.array([1, 1, 2, 2], np.float32)
    model = file(lines, (1, 3, 6, 6), **held)
    text, made = source_of(model, tmp_path)
    assert ("nn.FakeQuantize()" in text) is (mode == "nearest")
    x = RNG.normal(size=(1, 3, 6, 6)).astype(np.float32)
    if mode == "nearest":  # the mean of codes is cut to a whole number, or rounded
        (want,) = ReferenceEvaluator(model).run(None, {"x": x})
        np.testing.assert_array_equal(made(Tensor(x)).numpy(), want)
    text, _ = source_of(model, tmp_path, dequantize=True)
    assert ("uantize_linear" in text) is (mode == "linear")


@pytest.mark.parametrize(
    ("part", "name", "kept"),
    [
        ("Gather(d, i)", "other", 2),  # calibrated to the same range
        ("Gather(d, i)", "s", 1),
        ("Slice(d, i, j)", "other", 2),
        ("Transpose(d): perm=[1, 0]", "other", 1),  # the same elements have one range
    ],
)
def test_a_part_is_rounded_again_where_the_file_has_another_scale(
    tmp_path: Path, part: str, name: str, kept: int
) -> None:
    lines = f"""
        q = QuantizeLinear(x, s, z)
        d = DequantizeLinear(q, s, z)
        p = {part}
        r = QuantizeLinear(p, {name}, z)
        e = DequantizeLinear(r, {name}, z)
        y = Mul(e, e)
    """
    held = {"s": STEP, "other": STEP, "z": ZERO}
    held |= {"i": np.array([1]), "j": np.array([4])}
    model = file(lines, (6, 5), **held)
    text, made = source_of(model, tmp_path)
    assert text.count("nn.FakeQuantize()") == kept
    x = RNG.normal(size=(6, 5)).astype(np.float32)
    (want,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_array_equal(made(Tensor(x)).numpy(), want)


def test_dequantized_keeps_the_relu_that_rounding_did(tmp_path: Path) -> None:
    text, made = source_of(static("pairs"), tmp_path, dequantize=True)
    assert "ops.relu" in text
    assert "FakeQuantize" not in text
    assert all(param.scheme is None for param in made.parameters())


def test_a_relu_that_rounding_did_is_in_the_module_of_its_sum(tmp_path: Path) -> None:
    """A quantizer names the last rounding by the result, which says no module."""
    lines = """
        c = Conv(x, w)
        s = Add(c, x)
        q = QuantizeLinear(s, scale, zero)
        d = DequantizeLinear(q, scale, zero)
        e = Conv(d, v)
        t = Add(e, d)
        r = QuantizeLinear(t, scale, zero)
        y = DequantizeLinear(r, scale, zero)
    """
    held = {"w": scales(3, 3, 1, 1), "v": scales(3, 3, 1, 1)}
    model = file(lines, (1, 3, 2, 2), **held, scale=STEP, zero=np.uint8(0))
    names = "0/conv/Conv 0/Add 0/act/Relu_QuantizeLinear 0/act/Relu 1/conv/Conv 1/Add"
    for node, name in zip(model.graph.node, names.split(), strict=False):
        node.name = f"/layers/layers.{name}"
    text, _ = source_of(model, tmp_path, dequantize=True)
    assert "ops.relu(self.conv(x) + x)" in text
    assert text.count("ops.relu") == 1


def test_codes_of_an_embedding_that_are_moved_are_an_embedding(tmp_path: Path) -> None:
    """As quantize_dynamic leaves a Gather and a Transpose, read by two nodes."""
    lines = """
        i = Cast(x): to=7
        q = Gather(codes, i)
        e = DequantizeLinear(q, s, z)
        t = Transpose(q): perm=[1, 0, 2]
        d = DequantizeLinear(t, s, z)
        p = Transpose(d): perm=[1, 0, 2]
        r = Tanh(p)
        y = Add(r, e)
    """
    held = {"codes": whole(9, 4).view(np.uint8), "s": STEP, "z": ZERO}
    model = file(lines, (2, 3), **held)
    text, made = source_of(model, tmp_path)
    assert "nn.Embedding(" in text
    assert "dequantize" not in text
    x = RNG.integers(0, 9, (2, 3)).astype(np.float32)
    (want,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_allclose(made(Tensor(x)).numpy(), want, atol=1e-6)


def test_a_product_that_is_no_layer_rounds_in_front(tmp_path: Path) -> None:
    lines = """
        xq = QuantizeLinear(x, s, z)
        xd = DequantizeLinear(xq, s, z)
        wd = DequantizeLinear(w, ws)
        y = Gemm(xd, wd): alpha=2.0
    """
    model = file(lines, (2, 3), s=STEP, z=ZERO, w=whole(3, 4), ws=scales())
    text, made = source_of(model, tmp_path)
    assert "nn.FakeQuantize()" in text
    x = RNG.normal(size=(2, 3)).astype(np.float32)
    (want,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_allclose(made(Tensor(x)).numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("shape", [(2, 3), (2, 5, 3)])
def test_operators_take_a_scale_for_each_column(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    """Whatever the rank of what is multiplied: --no-simplify keeps QLinearMatMul."""
    lines = """
        xq = QuantizeLinear(x, s, z)
        q = QLinearMatMul(xq, s, z, w, ws, wz, s, z)
        y = DequantizeLinear(q, s, z)
    """
    held = {"w": whole(3, 4), "ws": scales(4), "wz": np.zeros(4, np.int8)}
    model = file(lines, shape, s=STEP, z=ZERO, **held)
    x = RNG.normal(size=shape).astype(np.float32)
    codes = np.clip(np.rint(x / STEP) + ZERO, 0, 255) - ZERO
    real = (codes @ held["w"].astype(np.int32)) * (STEP * held["ws"])
    want = (np.clip(np.rint(real / STEP) + ZERO, 0, 255) - ZERO) * STEP
    for simplify in (True, False):
        _, made = source_of(model, tmp_path, simplify=simplify)
        np.testing.assert_allclose(made(Tensor(x)).numpy(), want, atol=float(STEP) / 9)


def test_what_reads_whole_numbers_too_keeps_them(tmp_path: Path) -> None:
    lines = """
        q = QuantizeLinear(x, s, z)
        d = DequantizeLinear(q, s, z)
        i = Cast(q): to=1
        y = Add(d, i)
    """
    model = file(lines, (2, 3), s=STEP, z=ZERO)
    text, made = source_of(model, tmp_path)
    assert "ops.quantize_linear" in text
    x = RNG.normal(size=(2, 3)).astype(np.float32)
    (want,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_array_equal(made(Tensor(x)).numpy(), want)


@pytest.mark.parametrize("channels", [None, 3])
def test_fake_quantize_is_the_pair_of_operators(channels: int | None) -> None:
    layer = nn.FakeQuantize(channels)
    count = channels or 1
    layer.scale.assign(scales(count))
    layer.zero_point.assign(whole(count))
    x = RNG.normal(size=(2, 3, 4)).astype(np.float32) * 9
    held = layer.scale.numpy(), layer.zero_point.numpy()
    codes = ops.quantize_linear(x, *held)
    want = ops.dequantize_linear(codes, *held)
    np.testing.assert_array_equal(layer(Tensor(x)).numpy(), want)


@pytest.mark.parametrize("channels", [None, 3])
@pytest.mark.parametrize(
    ("dtype", "step", "zero", "value"),
    [
        ("UINT8", 0.1, 3, "q8f"),
        ("INT16", 1e-3, -7, "q16f"),
        ("UINT16", 1e-3, 40_000, "q16f"),
        ("INT4", 1.5, -2, "q4f"),
        ("UINT4", 1.5, 3, "q4f"),
        ("FLOAT8E4M3FN", 0.05, 0, "e4m3"),
        ("FLOAT8E5M2", 1e-3, 0, "e5m2"),
    ],
)
def test_pairs_of_every_type_of_codes_are_fake_quantization(
    tmp_path: Path, dtype: str, step: float, zero: int, value: str, channels: int | None
) -> None:
    shape = [] if channels is None else [channels]
    held = np.full(shape, step, np.float32) * np.arange(1, 1 + (channels or 1))
    kind = getattr(TensorProto, dtype)
    zeros = helper.make_tensor("z", kind, shape, [zero] * (channels or 1))
    model = file(
        "q = QuantizeLinear(x, s, z)\nd = DequantizeLinear(q, s, z)\ny = Neg(d)",
        (4, 3, 5),
        s=held.astype(np.float32).reshape(shape),
    )
    model.graph.initializer.append(zeros)
    model.opset_import[0].version, model.ir_version = 21, 10
    text, made = source_of(model, tmp_path)
    given = f'value="{value}"' if value != "q8f" else ""
    args = ", ".join(filter(None, ["3" if channels else "", given]))
    assert f"nn.FakeQuantize({args})" in text
    x = RNG.normal(size=(4, 3, 5)).astype(np.float32) * 9
    x[0, 0, :3] = 1e5, -1e5, 0.1
    (want,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_array_equal(made(Tensor(x)).numpy(), want)
    text, _ = source_of(model, tmp_path, dequantize=True)
    assert "uantize" not in text.split("class Model")[1]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 5), st.integers(1, 1400), st.integers(1, 6), st.booleans(), st.data()
)
def test_sums_of_whole_numbers_are_exact(
    rows: int, ins: int, outs: int, by_output: bool, data: st.DataObject
) -> None:
    seed = data.draw(st.integers(0, 1000))
    rng = np.random.default_rng(seed)
    codes = rng.integers(-128, 128, (outs, ins))
    level = Level.channel(0) if by_output else Level.tensor()
    step = rng.uniform(1e-3, 1, (outs, 1) if by_output else (1,)).astype(np.float32)
    layer = nn.Linear(ins, outs, bias=False)
    layer.weight.assign((codes * step).astype(np.float32))
    scheme = QuantScheme("q8f", level=level)
    layer.weight.assign(layer.weight.quantize(scheme, (step, None)))
    params = QParams(np.array([0.5], np.float32), np.array([7], np.int8))
    affine = QuantScheme("q8f", "affine")
    layer.on_input = InputQuantizer(affine, params, integers=True)
    given_codes = rng.integers(-128, 128, (rows, ins))
    x = ((given_codes - 7) * 0.5).astype(np.float32)
    total = (given_codes - 7).astype(np.int64) @ codes.T.astype(np.int64)
    want = total.astype(np.float32) * (np.float32(0.5) * step.reshape(-1))
    np.testing.assert_array_equal(layer(Tensor(x)).numpy(), want)
