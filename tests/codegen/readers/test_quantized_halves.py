"""Codes of quantized operators equal onnxruntime's, halfway between two as well."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import burnish
from burnish.codegen.backend import BurnishBackend
from burnish.codegen.readers.microsoft.shared.halves import SUMS, is_short
from tests.codegen.readers.microsoft import F4, case, fixed

SCALES = {
    "random": (0.03712, 0.08251, 0.04913),
    "equal": (0.0371, 0.0371, 0.0371),
    "doubled": (0.0371, 0.0742, 0.1484),
    "halved": (0.1484, 0.0742, 0.0371),
    "tripled": (0.0371, 0.1113, 0.0742),
    "powers of two": (0.0625, 0.03125, 0.0625),
}
ZEROS = (121, 37, 202)
ADDED = {
    "QLinearAdd": ((100, 100), (100, 100)),
    "QLinearAdd of a row": ((100, 100), (100,)),
    "QLinearMul": ((100, 100), (100, 100)),
}
ALONE = {
    "QLinearLeakyRelu": ((10_000,), {"alpha": 0.25}),
    "QLinearSigmoid": ((10_000,), {}),
    "QLinearAveragePool": ((2, 50, 100), {"kernel_shape": [4]}),
    "QLinearGlobalAveragePool": ((4, 2500, 4, 5), {}),
}


def drawn(dtype: Any, *shape: int) -> Any:
    low = np.iinfo(dtype).min
    return np.random.default_rng(0).integers(low, low + 256, shape).astype(dtype)


def grid(dtype: Any, scales: Any) -> list[tuple[Any, Any]]:
    """A scale and a zero point each for two inputs and the output."""
    low = np.iinfo(dtype).min
    zeros = [fixed(dtype(zero + low)) for zero in ZEROS]
    return [(fixed(F4(scale)), zero) for scale, zero in zip(scales, zeros, strict=True)]


def apart(model: Any, feeds: list[Any]) -> tuple[int, int]:
    """How many codes differ from onnxruntime's: the module's, and its plan's."""
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(model.SerializeToString())
    names = [value.name for value in session.get_inputs()]
    (expected,) = session.run(None, dict(zip(names, feeds, strict=True)))
    module = BurnishBackend.prepare(model).module
    given = [burnish.Tensor(feed) for feed in feeds]
    made = [call(*given).numpy() for call in (module, burnish.compile(module))]
    assert all(y.dtype == expected.dtype for y in made)
    plain, planned = (int((y != expected).sum()) for y in made)
    return plain, planned


@pytest.mark.parametrize(
    ("x_scale", "y_scale", "short"),
    [
        (0.0371, 0.0371, True),
        (0.1113, 0.0371, True),
        (0.0371, 0.1484, True),
        (0.03712, 0.08251, False),
        (1.0, 1 / 48.6948, False),  # of a bias that is all zeros
        (1.0, 0.017, False),
    ],
)
def test_ratios_that_make_halves(x_scale, y_scale, short):
    held = [
        ir.Value(name="s", const_value=ir.tensor(F4(scale)))
        for scale in (x_scale, y_scale)
    ]
    assert is_short(SUMS, *held) is short


@pytest.mark.oracle("onnxruntime")
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("scales", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize("name", ADDED)
def test_of_two_inputs(name, scales, dtype):
    (a, b), (x, y, z) = ADDED[name], grid(dtype, scales)
    inputs = (drawn(dtype, *a), *x, drawn(dtype, *b)[::-1], *y, *z)
    assert apart(*case(name.split()[0], *inputs)) == (0, 0)


@pytest.mark.oracle("onnxruntime")
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("scales", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize("name", ALONE)
def test_of_one_input(name, scales, dtype):
    (shape, options), (x, _, z) = ALONE[name], grid(dtype, scales)
    assert apart(*case(name, drawn(dtype, *shape), *x, *z, **options)) == (0, 0)


@pytest.mark.oracle("onnxruntime")
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("scales", SCALES.values(), ids=SCALES)
def test_of_parts(scales, dtype):
    x, y, z = grid(dtype, scales)
    a, b = drawn(dtype, 100, 100), drawn(dtype, 100, 100)[::-1]
    assert apart(*case("QLinearConcat", *z, a, *x, b, *y, axis=1)) == (0, 0)
    chosen = drawn(np.uint8, 100, 100).T > 127
    assert apart(*case("QLinearWhere", chosen, a, *x, b, *y, *z)) == (0, 0)


@pytest.mark.parametrize("scale", [0, np.inf, 1e-45])
def test_a_scale_that_has_no_whole_steps_is_read_without_a_warning(scale):
    codes = drawn(np.uint8, 2, 3)
    z = fixed(F4(scale)), fixed(np.uint8(0))
    model, _ = case(
        "QLinearSoftmax", codes, fixed(F4(0.1)), fixed(np.uint8(0)), *z, opset=13
    )
    BurnishBackend.prepare(model)


@pytest.mark.oracle("onnxruntime")
@pytest.mark.parametrize("steps", [256, 255, 251.4, 268.9])
@pytest.mark.parametrize("scales", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_of_a_softmax(dtype, scales, steps):
    low = np.iinfo(dtype).min
    x, _, _ = grid(dtype, scales)
    z = fixed(F4(1 / steps)), fixed(dtype(low))
    codes = drawn(dtype, 100, 100)
    assert apart(*case("QLinearSoftmax", codes, *x, *z, opset=13)) == (0, 0)
