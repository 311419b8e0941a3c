"""Random operators through generated source: distribution, shape, dtype and seed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

import burnish
from tests.harness.imported import imported

TYPES = onnx.TensorProto
N = 40_000
"""Enough for a mean to be within 0.02 deviations: four of its own."""


def module(folder: Path, op: str, like: Any = None, **attributes: Any) -> Any:
    """One random operator, with an input like that array if there is one."""
    inputs = []
    if like is not None:
        kind = onnx.helper.np_dtype_to_tensor_dtype(like.dtype)
        inputs.append(onnx.helper.make_tensor_value_info("x", kind, like.shape))
    node = onnx.helper.make_node(op, ["x"] if inputs else [], ["y"], **attributes)
    bare = onnx.helper.make_graph([node], "g", inputs, [])
    bare.output.append(onnx.helper.make_empty_tensor_value_info("y"))
    opset = onnx.helper.make_opsetid("", 22)
    made = onnx.helper.make_model(bare, opset_imports=[opset], ir_version=10)
    made = onnx.shape_inference.infer_shapes(made, strict_mode=True, data_prop=True)
    onnx.save(made, folder / "made.onnx")
    return imported(folder / "made.onnx", folder)


def moments(y: Any) -> tuple[float, float]:
    values = y.numpy().astype(np.float64)
    return float(values.mean()), float(values.std())


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_normal(dtype: str, tmp_path: Path) -> None:
    code = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    options = {"dtype": code, "mean": 3.0, "scale": 0.5, "shape": [N // 4, 4]}
    y = module(tmp_path, "RandomNormal", **options)()
    assert (y.shape, y.dtype) == ((N // 4, 4), np.dtype(dtype))
    mean, deviation = moments(y)
    assert mean == pytest.approx(3, abs=0.01)
    assert deviation == pytest.approx(0.5, abs=0.01)
    within = (np.abs(y.numpy().astype(float) - 3) < 0.5).mean()
    assert within == pytest.approx(math.erf(2**-0.5), abs=0.01)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_uniform(dtype: str, tmp_path: Path) -> None:
    x = np.zeros((2, N // 2), dtype)
    model = module(tmp_path, "RandomUniformLike", x, low=-1.0, high=3.0)
    y = model(x)
    assert (y.shape, y.dtype) == (x.shape, np.dtype(dtype))
    values = np.sort(y.numpy().ravel().astype(float))
    assert values[0] >= -1
    assert values[-1] <= 3
    even = np.linspace(-1, 3, N)
    assert np.abs(values - even).max() < 0.05


def test_normal_of_another_dtype_than_its_like(tmp_path: Path) -> None:
    x = np.zeros((3, 2), np.float32)
    y = module(tmp_path, "RandomNormalLike", x, dtype=TYPES.DOUBLE)(x)
    assert (y.shape, y.dtype) == ((3, 2), np.float64)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", ml_dtypes.bfloat16])
def test_bernoulli(dtype: Any, tmp_path: Path) -> None:
    p = np.repeat([0.0, 0.25, 0.5, 1.0], N).reshape(4, N).astype(dtype)
    y = module(tmp_path, "Bernoulli", p)(p)
    assert y.dtype == p.dtype
    shares = y.numpy().astype(float).mean(axis=1)
    np.testing.assert_allclose(shares, [0, 0.25, 0.5, 1], atol=0.01)
    assert shares[0] == 0
    assert shares[3] == 1


def test_multinomial(tmp_path: Path) -> None:
    shares = np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]], np.float32)
    with np.errstate(divide="ignore"):
        x = np.log(shares)
    options = {"sample_size": N, "dtype": TYPES.INT64}
    y = module(tmp_path, "Multinomial", x, **options)(x)
    assert (y.shape, y.dtype) == ((2, N), np.int64)
    for row, wanted in zip(y.numpy(), shares, strict=True):
        got = np.bincount(row, minlength=3) / N
        np.testing.assert_allclose(got, wanted, atol=0.01)


@pytest.mark.parametrize(
    ("op", "more"),
    [
        ("RandomNormal", {"shape": [50], "seed": 7.0}),
        ("RandomUniform", {"shape": [50], "seed": 7.0}),
    ],
)
def test_draws_are_burnish_seeds(op: str, more: dict[str, Any], tmp_path: Path) -> None:
    """The same after the same seed, else others; the file's seed changes nothing."""
    model = module(tmp_path, op, **more)
    burnish.seed(3)
    first, second = model().numpy(), model().numpy()
    assert not np.array_equal(first, second)
    burnish.seed(3)
    np.testing.assert_array_equal(model().numpy(), first)
    np.testing.assert_array_equal(model().numpy(), second)
    burnish.seed(4)
    assert not np.array_equal(model().numpy(), first)


def test_a_model_draws_differently_for_every_node(tmp_path: Path) -> None:
    model = imported(
        """
        <ir_version: 10, opset_import: ["" : 20]>
        g () => (float[100] y) {
          a = RandomNormal <shape = [100], seed = 1.0> ()
          b = RandomNormal <shape = [100], seed = 1.0> ()
          y = Sub(a, b)
        }
        """,
        tmp_path,
    )
    assert moments(model())[1] == pytest.approx(2**0.5, abs=0.4)
