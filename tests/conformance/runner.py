"""ONNX's own node cases through generated source: generate, import, run, compare."""

from __future__ import annotations

import functools
import re
import tomllib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from burnish import Tensor
from burnish.codegen.backend import imported
from tests.harness.onnx_cases import cases

RANDOM = re.compile(
    "test_(bernoulli|randomuniform|training_dropout(_default)?(_mask)?$)"
)
"""Cases with draws of their own: kind, shape and dtype are compared."""
TWO_ROUNDINGS = 2**-6
"""The tolerance of ONNX's own runner for bfloat16, whatever the case says."""


@functools.cache
def exclusions() -> dict[str, str]:
    """The cases that do not pass, with reasons."""
    path = Path(__file__).with_name("exclusions.toml")
    groups = tomllib.loads(path.read_text())
    return {name: reason for group in groups.values() for name, reason in group.items()}


def failure(name: str) -> str | None:
    """Why the case does not pass; None when it does."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run(cases()[name])
    except Exception as error:
        first = (str(error).strip() or "no message").splitlines()
        return f"{type(error).__name__}: {' '.join(first[:2])}"
    return None


def run(case: Any) -> None:
    """Raise when the generated module's results are not the case's."""
    model = imported(case.model)
    for inputs, outputs in case.data_sets:
        results = model(*(given(value) for value in map(plain, inputs)))
        results = results if isinstance(results, tuple) else (results,)
        assert len(results) == len(outputs), f"{len(results)} results"
        by_chance = RANDOM.match(case.name) is not None
        for got, expected in zip(results, map(plain, outputs), strict=True):
            compare(got, expected, case.rtol, case.atol, values=not by_chance)


def plain(value: Any) -> Any:
    """The content of a data set as arrays, lists of arrays, or None."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value if value is None else np.asarray(value)


def given(value: Any) -> Any:
    """The same as arguments of a generated module."""
    if isinstance(value, list):
        return [given(item) for item in value]
    return None if value is None else Tensor(value)


def compare(got: Any, expected: Any, rtol: float, atol: float, values: bool) -> None:
    """Equal kind, shape and dtype, and close values."""
    if expected is None or isinstance(expected, list):
        assert type(got) is type(expected), f"expected {expected}, got {got}"
        for one, other in zip(got or (), expected or (), strict=True):
            compare(one, other, rtol, atol, values)
        return
    array = np.asarray(got.numpy())
    assert array.shape == expected.shape, f"shape {array.shape}, not {expected.shape}"
    if expected.dtype.kind in "OUS":
        assert array.tolist() == _decoded(expected), f"{array} is not {expected}"
        return
    assert array.dtype == expected.dtype, f"dtype {array.dtype}, not {expected.dtype}"
    if values and expected.dtype.kind in "fcV":
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        a, b = array.astype(wide), expected.astype(wide)
        if expected.dtype.name == "bfloat16":
            rtol = max(rtol, TWO_ROUNDINGS)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
    elif values:
        np.testing.assert_array_equal(array, expected)


def _decoded(array: np.ndarray) -> Any:
    decoded = [v.decode() if isinstance(v, bytes) else v for v in array.ravel()]
    return np.asarray(decoded, object).reshape(array.shape).tolist()
