"""Gradient clipping: by value, by each parameter's norm, by the norm of all."""

import numpy as np
import pytest

from burnish import nn, optim
from burnish.errors import InputError
from burnish.optim import GradientsParams
from burnish.optim.core.clip import are_finite

FOUND = {
    "a": np.array([[3.0, -4.0]], np.float32),
    "b": np.array([0.3, 0.4]),
    "c": np.array(12.0),
    "empty": np.zeros((0, 3)),
}


def test_by_value():
    got = optim.ClipValue(1.0)(GradientsParams(FOUND))
    assert got["a"].tolist() == [[1, -1]]
    assert got["b"].tolist() == [0.3, 0.4]
    assert got["a"].dtype == np.float32


def test_by_each_norm():
    got = optim.ClipNorm(1.0)(GradientsParams(FOUND))
    np.testing.assert_allclose(got["a"], [[0.6, -0.8]], 1e-6)
    np.testing.assert_allclose(got["b"], [0.3, 0.4])
    np.testing.assert_allclose(got["c"], 1, 1e-6)
    assert got["a"].dtype == np.float32
    assert got["empty"].shape == (0, 3)


def test_by_the_norm_of_all():
    got = optim.ClipGlobalNorm(1.3)(GradientsParams({k: FOUND[k] for k in "ac"}))
    np.testing.assert_allclose(got["a"], [[0.3, -0.4]], 1e-6)
    np.testing.assert_allclose(got["c"], 1.2, 1e-6)
    small = optim.ClipGlobalNorm(100.0)(GradientsParams(FOUND))
    assert all((small[name] == FOUND[name]).all() for name in FOUND)


def test_zero_gradients_stay_zero():
    for clip in (optim.ClipNorm(1.0), optim.ClipGlobalNorm(1.0), optim.ClipValue(1.0)):
        assert clip(GradientsParams({"x": np.zeros(3)}))["x"].tolist() == [0, 0, 0]


@pytest.mark.parametrize("limit", [0, -1.0, float("nan")])
@pytest.mark.parametrize(
    "clip", [optim.ClipValue, optim.ClipNorm, optim.ClipGlobalNorm]
)
def test_a_limit_is_above_0(clip, limit):
    with pytest.raises(InputError, match=f"{clip.__name__} limit: expected a number"):
        clip(limit)


def test_an_optimizer_clips_first():
    bag = nn.Module()
    bag.x = nn.Param(np.zeros(2))
    optimizer = optim.SGD(clip=optim.ClipNorm(1.0))
    optimizer.step(1.0, bag, GradientsParams({"x": np.array([30.0, 40.0])}))
    np.testing.assert_allclose(bag.x.numpy(), [-0.6, -0.8], 1e-6)


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([], True),
        ([[1.0, 2.0], [3e38]], True),
        ([[1.0, 2.0], [np.inf]], False),
        ([[np.nan, 2.0], [3.0]], False),
    ],
)
def test_gradients_are_finite(values, wanted):
    found = {f"{i}": np.array(each, np.float32) for i, each in enumerate(values)}
    assert are_finite(GradientsParams(found)) is wanted


@pytest.mark.oracle
def test_pytorch_clips_the_same(torch):
    found = {name: FOUND[name] for name in "ab"}
    params = [torch.nn.Parameter(torch.zeros(g.shape)) for g in found.values()]
    for param, g in zip(params, found.values(), strict=True):
        param.grad = torch.from_numpy(g.astype(np.float32))
    torch.nn.utils.clip_grad_norm_(params, 2.0)
    got = optim.ClipGlobalNorm(2.0)(GradientsParams(found))
    for ours, param in zip(got.values(), params, strict=True):
        np.testing.assert_allclose(ours, param.grad.numpy(), rtol=1e-6)
