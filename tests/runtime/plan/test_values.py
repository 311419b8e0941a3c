"""NaN, infinities, subnormal and large numbers go through as in the plain call."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import burnish
from burnish import Tensor, ops
from tests.runtime.plan.checks import records

EDGES = (0, -0.0, np.nan, np.inf, -np.inf, 1e30, -1e30, 1e-40, -1e-40)
BENDS = (1, -1, 88, 89, -88, -104, -110, 5, -7, 0.3, -0.3)
VALUES = np.array([*EDGES, *BENDS], np.float32)
ROWS = (4, 5)

NAMES = (
    *(
        "relu",
        "relu6",
        "gelu",
        "sigmoid",
        "tanh",
        "swish",
        "hard_swish",
        "hard_sigmoid",
    ),
    *("leaky_relu", "exp", "sqrt", "erf", "log", "sin", "cos", "square", "reciprocal"),
    "neg",
)
FUNCTIONS = {name: getattr(ops, name) for name in NAMES} | {
    "abs": abs,
    "gelu with tanh": lambda x: ops.gelu(x, approximate="tanh"),
    "clip": lambda x: ops.clip(x, -1, 2),
    "clip below": lambda x: ops.clip(x, -1),
    "maximum": lambda x: ops.maximum(x, 0.5),
    "minimum": lambda x: ops.minimum(0.5, x),
    "where": lambda x: ops.where(x > 0, x, -1.0),
    "sums": lambda x: x + x[::-1],
    "products": lambda x: x * x[::-1],
    "quotients": lambda x: x / x[::-1],
    "powers": lambda x: abs(x) ** 0.5,
    "truth": lambda x: (x > 0) | (x != x),
    "softmax": lambda x: ops.softmax(x.reshape(ROWS), axis=-1),
    "greatest of rows": lambda x: x.reshape(ROWS).max(axis=1),
    "greatest of columns": lambda x: x.reshape(ROWS).max(axis=0),
    "sums of columns": lambda x: x.reshape(ROWS).sum(axis=0),
    "layer norm": lambda x: ops.layer_norm(x.reshape(ROWS), 5),
    "max pool": lambda x: ops.max_pool(x.reshape((1, 1, *ROWS)), kernel_size=2),
    "conv": lambda x: ops.relu(
        ops.conv(
            x.reshape((1, 1, *ROWS)), Tensor(np.ones((3, 1, 2, 2), "f")), padding=1
        )
    ),
    "linear": lambda x: ops.gelu(x.reshape((20, 1)) @ Tensor(np.ones((1, 3), "f"))),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name):
    function, x = FUNCTIONS[name], Tensor(VALUES)
    fast = burnish.compile(function)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        ours, wanted = fast(x).numpy(), function(x).numpy()
    assert records(fast)
    np.testing.assert_allclose(ours, wanted, rtol=2e-6, atol=1e-11)
