"""Activations against torch's of the same name."""

import numpy as np
import pytest

from burnish import Tensor, nn
from tests.runtime.nn.oracle import DTYPES, layer

torch = pytest.importorskip("torch")
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
    layer("Threshold", X, -0.3, 0.0),
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


ODD = np.float32([np.nan, np.inf, -np.inf, 0, 0.5, -0.5, 1, -1, 6, 3, -3])


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        *(("ReLU", ()), ("ReLU6", ()), ("Hardtanh", ()), ("Threshold", (0.5, 2.0))),
        *(("Hardshrink", ()), ("Softshrink", ()), ("LeakyReLU", ())),
    ],
)
def test_what_is_no_number_or_at_a_bound(name, arguments):
    x = Tensor(ODD, device="cpu:autodiff").require_grad()
    y = getattr(nn, name)(*arguments)(x)
    its = torch.tensor(ODD, requires_grad=True)
    want = getattr(torch.nn, name)(*arguments)(its)
    want.sum().backward()
    np.testing.assert_array_equal(y.numpy(), want.detach())
    np.testing.assert_array_equal(x.grad(y.sum().backward()).numpy(), its.grad)
