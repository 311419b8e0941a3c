"""Kernels for the norms of gradients, and for the factors that limit them."""

import numpy as np
import pytest

from burnish.kernels import direct
from burnish.kernels.records import POWERS


@pytest.mark.parametrize("p", [1.0, 2.0, 2.5, float("inf")])
@pytest.mark.parametrize("count", [1, 7, 31, 4095, 4096, 4097, 10_007])
def test_norms_are_those_of_float64(count, p):
    x = np.random.default_rng(count).normal(size=count).astype(np.float32)
    blocks = -(-count // POWERS["block"])
    sums, factor = np.full(blocks + 1, -1.0), np.full(2, -1, np.float32)
    direct.launch("powers", 3, x=x, out=sums, count=count, p=p)
    assert sums[blocks] == -1
    each = {"p": p, "limit": 0.5, "epsilon": 1e-6}
    direct.launch("clip_factor", 1, x=sums, out=factor, count=blocks, **each)
    norm = np.linalg.norm(x.astype(np.float64), p)
    wanted = np.float32(min(0.5 / (norm + 1e-6), 1))
    np.testing.assert_allclose(factor, [wanted, -1], rtol=2e-7)
