"""Quantization: rounding, saturation, axes and blocks."""

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.numpy_helper import from_array, to_float8e8m0

from burnish import ops
from burnish.errors import InputError
from tests.harness.operators import case
from tests.harness.reference import needs_onnx

BYTES = np.array([[0, 3, 128], [255, 7, 200]], np.uint8)
ZERO = np.array([128, 0], np.uint8)

CASES = [
    case(
        ops.dequantize_linear,
        BYTES,
        (2,),
        ZERO,
        axis=0,
        low=0.5,
        expect=lambda x, s, z: (
            (x.astype(int) - z[:, None]).astype(s.dtype) * s[:, None]
        ),
    ),
    case(
        ops.dequantize_linear,
        np.arange(-6, 6, dtype=np.int8).reshape(2, 6),
        (2, 3),
        block_size=2,
        expect=lambda x, s: x.astype(s.dtype) * s.repeat(2, axis=1),
    ),
    case(
        ops.dequantize_linear,
        np.array([1, -2], np.int32),
        (),
        expect=lambda x, s: x.astype(s.dtype) * s,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


def test_halves_go_to_even():
    x = np.float32([0.5, 1.5, 2.5, -0.5, -1.5, -2.5])
    y = ops.quantize_linear(x, np.float32(1), np.int8(0))
    assert y.dtype == np.int8
    assert y.tolist() == [0, 2, 2, 0, -2, -2]


def test_values_outside_are_saturated():
    x = np.float32([-1000, 1000])
    assert ops.quantize_linear(x, np.float32(1)).tolist() == [0, 255]
    assert ops.quantize_linear(x, np.float32(1), dtype="int4").tolist() == [-8, 7]
    wide = ops.quantize_linear(x, np.float32(1), np.uint8(3))
    assert wide.tolist() == [0, 255]


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16])
@pytest.mark.parametrize("scale", [0.5, np.inf])
@pytest.mark.parametrize("n", [5, 70])
def test_nan_becomes_the_least_code_as_in_onnxruntime(dtype, scale, n):
    onnxruntime = pytest.importorskip("onnxruntime")
    x = np.resize(np.float32([np.nan, -np.inf, np.inf, 3, -3]), n)
    scale, zero = np.float32(scale), dtype(3)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        [helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["y"])],
        "quantize",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [n])],
        [helper.make_tensor_value_info("y", kind, [n])],
        [from_array(scale, "scale"), from_array(zero, "zero")],
    )
    opset = [helper.make_opsetid("", 21)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    with np.errstate(invalid="ignore"):  # infinity by infinity
        y = ops.quantize_linear(x, scale, zero)
        both = ops.fake_quantize(
            x, scale.reshape(1), np.int8([3]), value="q8f", blocks=(n,)
        )
        want = session.run(None, {"x": x})[0]
        assert y.dtype == dtype
        np.testing.assert_array_equal(y, want)
        if dtype is np.int8:
            want = (want.astype(np.int32) - 3) * scale
            np.testing.assert_array_equal(both, want)


def test_one_scale_for_each_channel():
    x = np.float32([[1, 2], [3, 4], [5, 6]])
    y = ops.quantize_linear(x, np.float32([1, 2]), np.array([10, 20], np.uint8))
    assert y.tolist() == [[11, 21], [13, 22], [15, 23]]


def test_blocks_have_their_own_scale():
    x = np.float32([[1, 2, 3, 4]])
    y = ops.quantize_linear(x, np.float32([[1, 2]]), block_size=2, axis=-1)
    assert y.tolist() == [[1, 2, 2, 2]]


def test_a_scale_that_does_not_fit_is_refused():
    with pytest.raises(InputError, match="2 along axis 1, got shape"):
        ops.quantize_linear(np.ones((3, 2)), np.ones(3))


def test_a_wide_floating_dtype_is_refused():
    with pytest.raises(InputError, match="integer dtype"):
        ops.quantize_linear(np.ones(2), np.ones(()), dtype=np.float16)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("float8_e4m3fn", [448, -448, 2]), ("float4_e2m1fn", [6, -6, 2])],
)
def test_small_floats_are_saturated(name, expected):
    y = ops.quantize_linear(np.float32([1e5, -1e5, 4]), 2.0, dtype=name)
    assert y.dtype.name == name
    assert y.astype(float).tolist() == expected


def test_small_floats_become_nan_where_that_is_asked_for():
    x = np.float32([1e5, 4])
    y = ops.quantize_linear(x, 2.0, dtype="float8_e4m3fn", saturate=False)
    assert np.isnan(y.astype(float)).tolist() == [True, False]


def test_small_floats_come_back():
    q = np.array([1, 2, -6], ml_dtypes.float4_e2m1fn)
    assert ops.dequantize_linear(q, np.float32(0.5), q[1:2]).tolist() == [-0.5, 0, -4]


UP = pytest.param("up", marks=needs_onnx(1, 22, "a negative number rounded up"))


@pytest.mark.parametrize("rounding", [UP, "down", "nearest"])
@pytest.mark.parametrize("saturate", [True, False])
def test_powers_of_two_are_rounded_as_the_specification_says(rounding, saturate):
    x = np.float32([0, 0.1, 0.75, 1, 1.5, 1.51, 3, -5, 3e38, np.inf, np.nan])
    y = ops.power_of_two(x, rounding=rounding, saturate=saturate)
    want = to_float8e8m0(x, saturate, rounding)
    assert y.view(np.uint8).tolist() == want.view(np.uint8).tolist()


def test_an_unknown_rounding_is_refused():
    with pytest.raises(InputError, match="'up', 'down' or 'nearest'"):
        ops.power_of_two(np.ones(2), rounding="even")
