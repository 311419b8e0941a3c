"""Activations against torch's of the same name."""

import numpy as np
import pytest

from tests.runtime.nn.oracle import DTYPES, layer

pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
X = (3, 4)

LAYERS = [
    layer("ReLU", X),
    layer("ReLU6", X),
    layer("LeakyReLU", X, 0.2),
    layer("PReLU", X),
    layer("PReLU", (2, 3, 4, 2), 3),
    layer("PReLU", [np.array(-0.7)]),
    layer("ELU", X, 0.7),
    layer("CELU", X, 0.7),
    layer("SELU", X),
    layer("GELU", X),
    layer("GELU", [np.array(0.7)]),
    layer("GELU", X, "tanh"),
    layer("SiLU", X),
    layer("Mish", X),
    layer("Sigmoid", X),
    layer("LogSigmoid", X),
    layer("Tanh", X),
    layer("Tanhshrink", X),
    layer("Softsign", X),
    layer("Softplus", X),
    layer("Softplus", X, 2.0, 0.5),
    layer("Hardswish", X),
    layer("Hardsigmoid", X),
    layer("Hardtanh", X, -0.5, 0.5),
    layer("Hardshrink", X),
    layer("Hardshrink", X, 1.2),
    layer("Softshrink", X),
    layer("Softshrink", X, 1.2),
    layer("Threshold", X, 0.3, -2.0),
    layer("RReLU", X, 0.2, 0.2),
    layer("GLU", X),
    layer("GLU", (4, 3), 0),
    layer("Softmax", X, 1),
    layer("Softmax", [np.array(0.7)], -1),
    layer("LogSoftmax", [np.array(0.7)], 0),
    layer("Softmax", X, -1),
    layer("Softmin", X, 1),
    layer("Softmax2d", (2, 3, 4, 2)),
    layer("Softmax2d", (3, 4, 2)),
    layer("LogSoftmax", X, 0),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("row", LAYERS, ids=str)
def test_layer(row, dtype):
    row.check(dtype)
