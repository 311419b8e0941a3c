"""Odd but valid files: onnxruntime's numbers, as a package's module and in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burnish import Tensor
from tests.codegen.readers.odd import CASES
from tests.harness.exported import arrays
from tests.harness.source import source_of

WAYS: dict[str, dict[str, Any]] = {
    "package": {},
    "one file": {"standalone": True},
    "as it is": {"simplify": False},
}

BY_ONNXRUNTIME = (
    "ReduceLogSum of integers",
    "ReduceLogSumExp of integers",
    "a function with a reference to its attribute",
    "a scan backwards, along other axes",
    "an optional that a branch fills",
    "overloaded functions",
    "quantizers of no example",
    "sparse weights",
)
"""Cases that ONNX's reference evaluator cannot run, or runs wrongly."""


def judge(name: str) -> Any:
    marks = [pytest.mark.oracle("onnxruntime")] if name in BY_ONNXRUNTIME else []
    return pytest.param(name, marks=marks)


def listed(results: Any) -> list[np.ndarray]:
    several = results if isinstance(results, tuple | list) else [results]
    return [np.asarray(y.numpy() if hasattr(y, "numpy") else y) for y in several]


@pytest.mark.parametrize("name", [judge(name) for name in CASES])
def test_odd_files_are_right(name: str, tmp_path: Path) -> None:
    model, calls = CASES[name]()
    wanted = [arrays(model, *given) for given in calls]
    for options in WAYS.values():
        _, made = source_of(model, tmp_path, **options)
        for given, expected in zip(calls, wanted, strict=True):
            for got, want in zip(listed(made(*given)), expected, strict=True):
                assert got.shape == np.shape(want)
                assert got.dtype == np.asarray(want).dtype
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "name", [name for name in CASES if name.startswith("weights named")]
)
def test_weights_of_any_name_train(name: str, tmp_path: Path) -> None:
    model, ((given,),) = CASES[name]()
    _, made = source_of(model, tmp_path)
    made = made.to("cpu:autodiff")
    gradients = made(Tensor(given, device="cpu:autodiff")).sum().backward()
    assert all(p.grad(gradients) is not None for p in made.parameters())
