"""ONNX's own runner of backend tests drives generated source."""

from __future__ import annotations

import unittest

import onnx
import onnx.backend.test
import pytest

from burnish.codegen.backend import BurnishBackend
from tests.harness.onnx_cases import cases


@pytest.mark.filterwarnings("ignore")
def test_the_runner_of_onnx_drives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "onnx.backend.test.loader.load_node_model_tests",  # it computes them anew
        lambda: [*cases().values()],
        raising=False,  # an older ONNX reads files
    )
    tests = onnx.backend.test.BackendTest(BurnishBackend, __name__)
    tests.include(r"test_(softmax_axis_1|gemm_default_no_bias|if|split_equal.*)_cpu$")
    result = unittest.TestResult()
    tests.test_suite.run(result)
    ran = result.testsRun - len(result.skipped)
    assert (result.failures, result.errors) == ([], [])
    assert ran >= 4
