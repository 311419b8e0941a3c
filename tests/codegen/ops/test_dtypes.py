"""Results in dtypes that few files have: values, and the dtype that ONNX says."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper

from burnish.codegen.backend import BurnishBackend
from burnish.codegen.pipeline import generate

Arrays = tuple[np.ndarray, ...]
HALF = np.array([[[2, 1], [0.5, 3]], [[1, 0], [4, -2]]], np.float16)
INTEGERS = np.array([[-3, 0, 1], [2, 5, 9]])
WORDS = np.array(["a"], object)

CASES: list[tuple[str, Arrays, dict[str, Any], int, np.ndarray]] = [
    ("Erf", (INTEGERS,), {}, 13, np.array([[0, 0, 0], [0, 0, 1]], np.int64)),
    (
        "Erf",
        (INTEGERS.astype(np.int8),),
        {},
        9,
        np.array([[0, 0, 0], [0, 0, 1]], np.int8),
    ),
    ("Erf", (np.array([0, 9], np.float64),), {}, 13, np.array([0, 1], np.float64)),
    (
        "Shrink",
        (np.array([5, 0, 2], np.uint32),),
        {"lambd": 1.0, "bias": 1.0},
        9,
        np.array([4, 0, 1], np.uint32),
    ),
    (
        "Shrink",
        (INTEGERS.astype(np.int8),),
        {"lambd": 1.5},
        9,
        np.array([[-3, 0, 0], [2, 5, 9]], np.int8),
    ),
    (
        "CastLike",
        (np.array([[3, 6]], np.uint64), WORDS),
        {},
        15,
        np.array([["3", "6"]], object),
    ),
    (
        "CastLike",
        (np.array([1.5, -2], np.float32), np.array([1], np.int8)),
        {},
        15,
        np.array([1, -2], np.int8),
    ),
    ("Det", (HALF,), {}, 11, np.array([5.5, -2], np.float16)),
    ("SwiGLU", (np.array(0.0), np.array(2.0)), {}, 28, np.array(0.0)),
    (
        "SwiGLU",
        (np.array([64], np.float32), np.array([2], np.float32)),
        {},
        28,
        np.array([128], np.float32),
    ),
]


@pytest.mark.parametrize("held", ["inputs", "constants"])
@pytest.mark.parametrize(("operator", "arrays", "attributes", "opset", "want"), CASES)
def test_values_and_dtypes(
    operator: str,
    arrays: Arrays,
    attributes: dict[str, Any],
    opset: int,
    want: np.ndarray,
    held: str,
) -> None:
    """The first input is the caller's; the others are too, or the file's constants."""
    names = [f"x{i}" for i in range(len(arrays))]
    node = helper.make_node(operator, names, ["y"], **attributes)
    inputs = dict(zip(names, map(np.asarray, arrays), strict=True))
    constants = [] if held == "inputs" else names[1:]
    weights = [numpy_helper.from_array(inputs.pop(name), name) for name in constants]
    model = _model(node, inputs, weights, opset)
    (got,) = BurnishBackend.run_model(model, [*inputs.values()])
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if want.dtype.kind == "f":
        np.testing.assert_allclose(got, want, rtol=1e-3)
    else:
        assert got.tolist() == want.tolist()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_rms_normalization_has_the_dtype_of_its_scale(dtype: Any) -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal((2, 4)).astype(np.float32).astype(dtype)
    scale = random.standard_normal(4).astype(np.float32)
    node = helper.make_node("RMSNormalization", ["x", "scale"], ["y"])
    weights = [numpy_helper.from_array(scale, "scale")]
    (got,) = BurnishBackend.run_model(_model(node, {"x": x}, weights, 23), [x])
    wide = x.astype(np.float64)
    want = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5) * scale
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want, rtol=1e-5)


def _model(node: Any, inputs: dict[str, Any], weights: list[Any], opset: int) -> Any:
    types = {
        name: TensorProto.STRING
        if a.dtype == object
        else helper.np_dtype_to_tensor_dtype(a.dtype)
        for name, a in inputs.items()
    }
    declared = [
        helper.make_tensor_value_info(name, types[name], a.shape)
        for name, a in inputs.items()
    ]
    graph = helper.make_graph(
        [node], "g", declared, [ValueInfoProto(name="y")], weights
    )
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


@pytest.mark.parametrize(
    ("dtype", "to", "is_clipped"),
    [
        ("int8", TensorProto.FLOAT8E5M2, False),
        ("uint8", TensorProto.FLOAT8E4M3FN, False),
        ("uint8", TensorProto.FLOAT8E4M3FNUZ, True),
        ("bool", TensorProto.FLOAT8E4M3FN, False),
        ("int16", TensorProto.FLOAT8E4M3FN, True),
        ("float32", TensorProto.FLOAT8E5M2, True),
    ],
)
def test_only_what_may_be_too_large_is_clipped_for_small_floats(
    dtype, to, is_clipped, tmp_path
):
    node = helper.make_node("Cast", ["x"], ["y"], to=to)
    x = helper.make_tensor_value_info(
        "x", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), [2]
    )
    graph = helper.make_graph([node], "g", [x], [ValueInfoProto(name="y")])
    path = tmp_path / "cast.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    path.write_bytes(model.SerializeToString())
    assert ("ops.clip" in generate(path).text) == is_clipped
