"""What the file says becomes what a person would have written, and says the same."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import onnx
from onnx import numpy_helper

from burnish.codegen import pipeline
from tests.harness.reference import judged

RANDOM = np.random.default_rng(0)


def text_of(tmp_path, graph, weights=(), *feeds):
    """The source of a graph in ONNX's text form; it gives the reference's numbers."""
    proto = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 21]> g {graph}'
    )
    for name, array in dict(weights).items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    path = tmp_path / "made.onnx"
    onnx.save(proto, path)
    generated = pipeline.generate(path)
    source, *_ = pipeline.write(generated, tmp_path)
    spec = importlib.util.spec_from_file_location("made", source)
    module = importlib.util.module_from_spec(spec)
    sys.modules["made"] = module
    spec.loader.exec_module(module)
    names = [value.name for value in proto.graph.input]
    expected = judged(proto, dict(zip(names, feeds, strict=True)))
    found = module.Model.from_file()(*feeds)
    found = found if isinstance(found, tuple) else (found,)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(a), b, 1e-5, 1e-6)
    return generated.text


def test_sizes_divide_as_whole_numbers(tmp_path):
    graph = """(float[n, m, 3] x) => (float[k, j] y) {
        two = Constant<value_ints=[2]>() last = Constant<value_ints=[-1]>()
        s = Shape<start=1, end=2>(x) half = Div(s, two) to = Concat<axis=0>(half, last)
        y = Reshape(x, to) }"""
    x = RANDOM.normal(size=(2, 4, 3)).astype("f4")
    text = text_of(tmp_path, graph, {}, x)
    assert "// 2" in text
    assert "int(" not in text


def test_an_exporters_factor_is_a_number_and_no_weight(tmp_path):
    graph = "(float[n, 3] x) => (float[n, 3] y) { y = Mul(x, val_3) }"
    text = text_of(tmp_path, graph, {"val_3": np.float32([0.5])}, np.ones((2, 3), "f4"))
    assert "x * 0.5" in text
    assert "Param" not in text


def test_an_attribute_that_an_exporter_converted_is_a_number(tmp_path):
    graph = "(float[n, 3] x) => (bool[n, 3] y) { y = Greater(x, threshold_cast) }"
    weights = {"threshold_cast": np.float32(0.5)}
    text = text_of(tmp_path, graph, weights, np.ones((2, 3), "f4"))
    assert "x > 0.5" in text


def test_norms_of_ones_and_zeros_have_no_weights(tmp_path):
    graph = """(float[n, 3] x) => (float[n, 3] y, float[n, 3] z) {
        y = LayerNormalization(x, val_1) z = BatchNormalization(x, val_1, val_2, m, v)
    }"""
    weights = {"val_1": np.ones(3, "f4"), "val_2": np.zeros(3, "f4")}
    weights |= {"m": np.float32([1, 2, 3]), "v": np.float32([3, 2, 1])}
    x = RANDOM.normal(size=(2, 3)).astype("f4")
    text = text_of(tmp_path, graph, weights, x)
    assert "nn.LayerNorm(3, elementwise_affine=False)" in text
    assert "nn.BatchNorm1d(3, affine=False)" in text


def test_nothing_is_compared_with_true(tmp_path):
    graph = """(float[n] x) => (bool[n] y, bool[n] z) {
        yes = Constant<value=bool {1}>() no = Constant<value=bool {0}>()
        zero = Constant<value_float=0.0>() b = Less(x, zero)
        y = Equal(b, yes) z = Equal(no, b) }"""
    text = text_of(tmp_path, graph, {}, RANDOM.normal(size=4).astype("f4"))
    assert "==" not in text


def test_a_value_named_like_a_function_hides_none(tmp_path):
    graph = "(float[n] abs, float[n] l) => (float[n] y) { a = Abs(l) y = Add(a, abs) }"
    x = RANDOM.normal(size=4).astype("f4")
    text = text_of(tmp_path, graph, {}, x, -x)
    assert "def forward(self, abs_, l_)" in text


def test_a_title_counts(tmp_path):
    outputs = ", ".join(f"float[n] an_output_with_a_long_name_{i}" for i in range(9))
    nodes = " ".join(f"an_output_with_a_long_name_{i} = Neg(x)" for i in range(9))
    text = text_of(
        tmp_path, f"(float[n] x) => ({outputs}) {{ {nodes} }}", {}, np.ones(2, "f4")
    )
    assert text.startswith('"""1 input -> 9 outputs')


def test_a_zero_point_keeps_its_type(tmp_path):
    graph = """(float[n, 3] x) => (int8[n, 3] q, float[n, 3] y) {
        scale = Constant<value_float=0.02>() zero = Constant<value=int8 {5}>()
        q = QuantizeLinear(x, scale, zero) y = DequantizeLinear(q, scale, zero) }"""
    x = RANDOM.normal(size=(2, 3)).astype("f4")
    text = text_of(tmp_path, graph, {}, x)
    assert 'ops.quantize_linear(x, 0.02, 5, dtype="int8")' in text


def test_the_parts_of_a_mask_are_no_weights(tmp_path):
    graph = """(float[n, 3] x) => (float[n, 3] y) {
        at = Constant<value=int64[2, 1] {0, 2}>()
        mask = ScatterND(val_0, at, val_1) y = Add(x, mask) }"""
    weights = {"val_0": np.zeros(3, "f4"), "val_1": np.float32([-1, 1])}
    text = text_of(tmp_path, graph, weights, RANDOM.normal(size=(2, 3)).astype("f4"))
    assert "nn.Buffer" in text
    assert "nn.Param" not in text
    assert "scatter" not in text


def test_sizes_that_become_known_are_numbers(tmp_path):
    graph = """(float[n, 4, 3] x) => (float[n, k, m] y) {
        none = Constant<value_ints=[0]>() one = Constant<value_ints=[1]>()
        rows = Concat<axis=0>(none, one)
        pair = Unsqueeze(rows, one) turned = Transpose(pair)
        flat = Reshape(turned, minus) padded = Pad(x, flat, zero, axes)
        size = Shape<start=1, end=2>(padded) rest = Sub(size, three)
        more = Concat<axis=0>(none, rest) y = Pad(padded, more, zero, axes) }"""
    weights = {
        "minus": np.array([-1]),
        "three": np.array([3]),
        "zero": np.float32(0),
        "axes": np.array([1]),
    }
    x = RANDOM.normal(size=(2, 4, 3)).astype("f4")
    text = text_of(tmp_path, graph, weights, x)
    assert "shape" not in text
    assert "(0, 2)" in text


def test_a_table_of_sizes_is_turned_while_generating(tmp_path):
    graph = """(float[n, m] x) => (float[k, j] y) {
        s = Shape(x) one = Constant<value_ints=[1]>() zero = Constant<value_ints=[0]>()
        column = Unsqueeze(s, one) table = Concat<axis=1>(column, column)
        turned = Transpose(table) ends = Slice(turned, zero, one, zero)
        to = Reshape(ends, minus) back = Slice(to, minus, before, zero, minus)
        y = Reshape(x, back) }"""
    weights = {"minus": np.array([-1]), "before": np.array([-9])}
    x = RANDOM.normal(size=(2, 5)).astype("f4")
    text = text_of(tmp_path, graph, weights, x)
    assert "Tensor(" not in text


def test_a_table_plus_a_size_is_one_addition(tmp_path):
    """As relative positions are counted from the end; no statement for each number."""
    graph = """(float[n, m] x) => (int64[20, 1] y) {
        s = Shape<start=1, end=2>(x) y = Add(table, s) }"""
    table = np.arange(20)[:, None]
    text = text_of(tmp_path, graph, {"table": table}, np.ones((2, 3), "f4"))
    assert text.count("+") == 1
