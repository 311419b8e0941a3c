"""Softmax of opsets below 13, and as ONNX's converter of versions leaves it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import version_converter

from tests.codegen.passes.forms import form
from tests.harness.source import source_of

LAST, CHANNELS = "ops.softmax(x)", "ops.softmax(x, axis=1)"
ROWS = {
    "the last axis": ("Softmax<axis=3>", "batch,2,3,4", LAST),
    "the last axis, from behind": ("Softmax<axis=-1>", "batch,2,3,4", LAST),
    "of two axes": ("Softmax", "batch,4", LAST),
    "one place": ("Softmax", "batch,5,1,1", CHANNELS),
    "one place, of logarithms": (
        "LogSoftmax<axis=1>",
        "batch,5,1,1",
        "ops.log_softmax(x, axis=1)",
    ),
    "all axes but one are 1": ("Softmax<axis=1>", "batch,1,1,6", LAST),
    "the first axis": ("Softmax<axis=0>", "7,1", "ops.softmax(x, axis=0)"),
}
SEVERAL = {
    "two axes": ("Softmax<axis=2>", "batch,2,3,4"),
    "an open axis": ("Softmax<axis=1>", "batch,time,4"),
    "all axes": ("Softmax<axis=0>", "batch,4"),
}
ATTENTION = """
    t = Transpose<perm=[0,1,3,2]>(k)
    s = MatMul(q, t) c = Constant<value_float=0.5>() m = Mul(s, c)
    w = Softmax<axis=3>(m) y = MatMul(w, v)
"""


def numbers_agree(tmp_path, model: onnx.ModelProto) -> str:
    """The source, whose numbers are onnxruntime's."""
    import onnxruntime

    source, module = source_of(model, tmp_path)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    rng = np.random.default_rng(0)
    feed = {
        each.name: rng.standard_normal(
            [size if isinstance(size, int) else 3 for size in each.shape]
        ).astype(np.float32)
        for each in session.get_inputs()
    }
    (expected,) = session.run(None, feed)
    got = np.asarray(module(*feed.values()))
    np.testing.assert_allclose(got, expected, 1e-5, 1e-6)
    return source


def file(text: str, declared: int, opset: int, **inputs: str) -> onnx.ModelProto:
    model = form(text, opset=declared, **inputs)
    inferred = onnx.shape_inference.infer_shapes(model)
    if opset == declared:
        return inferred
    return version_converter.convert_version(inferred, opset)


@pytest.mark.oracle("onnxruntime")
@pytest.mark.parametrize(("declared", "opset"), [(8, 8), (11, 11), (8, 17), (11, 13)])
@pytest.mark.parametrize(("node", "shape", "line"), ROWS.values(), ids=ROWS)
def test_rows_along_one_axis(tmp_path, node, shape, line, declared, opset):
    if declared < 11 and "-1" in node:
        pytest.skip("axes are counted from the first before opset 11")
    model = file(f"y = {node}(x)", declared, opset, x=shape)
    source = numbers_agree(tmp_path, model)
    assert line in source
    assert "flatten" not in source


@pytest.mark.oracle("onnxruntime")
@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize(("node", "shape"), SEVERAL.values(), ids=SEVERAL)
def test_rows_of_several_axes_stay(tmp_path, node, shape, opset):
    model = file(f"y = {node}(x)", 11, opset, x=shape)
    assert "flatten" in numbers_agree(tmp_path, model)


@pytest.mark.oracle("onnxruntime")
@pytest.mark.parametrize(
    "text",
    [
        "f = Flatten<axis=3>(x) s = Softmax(f) n = Shape(z) y = Reshape(s, n)",
        "f = Flatten<axis=3>(x) s = Softmax<axis=0>(f) n = Shape(x) y = Reshape(s, n)",
        "f = Flatten<axis=3>(x) s = Softmax(f) n = Shape(x) r = Reshape(s, n) "
        "g = Flatten<axis=3>(r) y = Add(s, g)",
    ],
    ids=["another's shape", "along the rows' axis", "rows are read"],
)
def test_what_a_converter_does_not_write_stays(tmp_path, text):
    model = form(text, opset=17, x="2,3,4,5", z="2,3,5,4")
    assert "flatten" in numbers_agree(tmp_path, model)


@pytest.mark.oracle("onnxruntime")
@pytest.mark.parametrize("opset", [12, 13, 17])
def test_attention_is_found(tmp_path, opset):
    heads = "batch,2,time,4"
    model = file(ATTENTION, 12, opset, q=heads, k=heads, v=heads)
    assert "ops.scaled_dot_product_attention(q, k, v)" in numbers_agree(tmp_path, model)
