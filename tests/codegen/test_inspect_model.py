"""The inspection of a model file: what it counts and what it assumes."""

from __future__ import annotations

import msgspec
import onnx
import pytest

from burnish.codegen.tools.inspect_model import inspect

#: Operators with inputs of known shape -> multiply-accumulates counted by hand.
COSTS = {
    "y = Conv(x, w)": ("float[1,3,8,8] x, float[4,3,3,3] w", 4 * 6 * 6 * 27),
    "y = Conv<group=3>(x, w)": ("float[1,3,8,8] x, float[3,1,3,3] w", 3 * 36 * 9),
    "y = ConvTranspose(x, w)": ("float[1,3,8,8] x, float[3,4,2,2] w", 3 * 64 * 16),
    "y = MatMul(x, w)": ("float[5,7] x, float[7,9] w", 5 * 7 * 9),
    "y = MatMul(x, w) ": ("float[2,1,5,7] x, float[3,7,9] w", 6 * 5 * 7 * 9),
    "y = MatMul(x, w)  ": ("float[7] x, float[7] w", 7),
    "y = Gemm<transA=1, transB=1>(x, w)": ("float[7,5] x, float[9,7] w", 315),
    "y = LSTM<hidden_size=6>(x, w, r)": (
        "float[5,2,3] x, float[1,24,3] w, float[1,24,6] r",
        5 * 2 * 24 * (3 + 6),
    ),
    'y = GRU<hidden_size=6, direction="bidirectional">(x, w, r)': (
        "float[5,2,3] x, float[2,18,3] w, float[2,18,6] r",
        2 * 5 * 2 * 18 * (3 + 6),
    ),
    "y = Attention(x, w, r)": (
        "float[2,4,5,8] x, float[2,4,7,8] w, float[2,4,7,6] r",
        2 * 4 * 5 * 7 * (8 + 6),
    ),
    'y = Einsum<equation="bij,bjk->bik">(x, w)': (
        "float[2,3,5] x, float[2,5,7] w",
        2 * 3 * 5 * 7,
    ),
    "y = MatMulInteger(x, w)": ("uint8[5,7] x, uint8[7,9] w", 5 * 7 * 9),
    "y = ConvInteger(x, w)": ("uint8[1,3,8,8] x, uint8[4,3,3,3] w", 4 * 6 * 6 * 27),
    "y = Relu(x)": ("float[5,7] x", 0),
}


def model(path, body, inputs, weights=""):
    text = f"g ({inputs}) => (y) {weights} {{ {body} }}"
    proto = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 23], producer_name: "hand"> {text}'
    )
    onnx.save(proto, path)
    return path


@pytest.mark.parametrize("body", COSTS)
def test_costs(tmp_path, body):
    inputs, expected = COSTS[body]
    report = inspect(model(tmp_path / "m.onnx", body, inputs))
    assert report.macs == expected
    assert report.flops == 2 * expected
    assert report.assumed == report.uncounted == ()


def test_open_dimensions_count_as_one_and_are_named(tmp_path):
    path = model(tmp_path / "m.onnx", "y = MatMul(x, w)", "float[N,7] x, float[7,9] w")
    report = inspect(path)
    assert report.macs == 63
    assert report.assumed == ("N",)
    assert str(report.inputs[0]) == "float32[N, 7]"
    assert str(report.outputs[0]) == "float32[N, 9]"


def test_sizes_reach_the_nodes_through_shape_arithmetic(tmp_path):
    body = """s = Shape(x) i = Constant<value_ints=[0]>() n = Gather(s, i)
    m = Constant<value_ints=[-1]>() t = Concat<axis=0>(n, m) h = Reshape(x, t)
    y = MatMul(h, w)"""
    path = model(tmp_path / "m.onnx", body, "float[N,1,7] x, float[7,9] w")
    report = inspect(path, dims={"N": 4})
    assert report.macs == 4 * 63
    assert report.assumed == ()
    assert str(report.inputs[0]) == "float32[N, 1, 7]"


def test_operators_and_coverage(tmp_path):
    body = "a = Relu(x) b = Relu(a) y = my.Exp(b)"
    path = model(tmp_path / "m.onnx", body, "float[3] x")
    report = inspect(path)
    kinds = [(o.op_type, o.version, o.count, o.supported) for o in report.operators]
    assert kinds == [("Relu", 23, 2, True), ("Exp", 1, 1, False)]
    assert report.coverage == pytest.approx(2 / 3)
    assert not report.convertible
    assert len(report.operators[1].nodes) == 1


def test_weights_by_dtype(tmp_path):
    weights = "<float[2,3] w = {1,2,3,4,5,6}, int64[2] s = {3,2}>"
    body = "h = Reshape(w, s) y = MatMul(x, h)"
    report = inspect(model(tmp_path / "m.onnx", body, "float[1,3] x", weights))
    found = [(w.dtype, w.tensors, w.parameters, w.bytes) for w in report.weights]
    assert found == [("float32", 1, 6, 24), ("int64", 1, 2, 16)]
    assert (report.parameters, report.bytes) == (8, 40)
    assert report.producer == "hand"
    assert msgspec.json.decode(msgspec.json.encode(report))["opset"] == 23
