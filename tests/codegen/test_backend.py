"""ONNX's backend interface: its own runner drives generated source."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from burnish.codegen.backend import BurnishBackend

X = np.array([[-1.0, 2.0], [3.0, -4.0]], np.float32)


def test_a_node() -> None:
    node = helper.make_node("LeakyRelu", ["x"], ["y"], alpha=0.5)
    (y,) = BurnishBackend.run_node(node, [X])
    np.testing.assert_allclose(y, np.where(X > 0, X, 0.5 * X))


def test_several_outputs_and_a_version() -> None:
    node = helper.make_node("TopK", ["x", "k"], ["values", "places"], axis=1)
    k = np.array([1], np.int64)
    values, places = BurnishBackend.run_node(node, [X, k], opset_version=18)
    assert values.tolist() == [[2.0], [3.0]]
    assert places.tolist() == [[1], [0]]


@pytest.mark.parametrize(
    ("device", "there"), [("CPU", True), ("TPU", False), ("CUDA:x", False)]
)
def test_devices(device: str, there: bool) -> None:
    assert BurnishBackend.supports_device(device) is there
