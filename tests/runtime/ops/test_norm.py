"""Normalisation: against its formula, and every gradient of both orders."""

import numpy as np
import pytest

from burnish import Tensor, ops
from tests.harness.operators import case


def unit(x, axes, eps=1e-5):
    mean = x.mean(axis=axes, keepdims=True)
    return (x - mean) / np.sqrt(x.var(axis=axes, keepdims=True) + x.dtype.type(eps))


def over_channels(y, scale, bias):
    shape = (-1, *(1 for _ in y.shape[2:]))
    return y * scale.reshape(shape) + bias.reshape(shape)


def plain_lrn(x, size):
    squares = np.pad(x**2, ((0, 0), ((size - 1) // 2, size // 2), (0, 0)))
    total = sum(squares[:, i : i + x.shape[1]] for i in range(size))
    return x / (1 + 1e-4 / size * total) ** 0.75


CASES = [
    case(
        ops.standardize,
        (3, 4, 2),
        axes=(0, 2),
        expect=lambda x: (
            unit(x, (0, 2)),
            x.mean(axis=(0, 2), keepdims=True),
            x.var(axis=(0, 2), keepdims=True),
        ),
    ),
    case(ops.standardize, (3, 4), axes=(1,), center=False, eps=0.1),
    case(ops.layer_norm, (3, 5), normalized_shape=5, expect=lambda x: unit(x, (1,))),
    case(
        ops.layer_norm_from,
        (2, 3, 4),
        (3, 4),
        (3, 4),
        axis=1,
        expect=lambda x, w, b: unit(x, (1, 2)) * w + b,
    ),
    case(ops.layer_norm_from, (2, 4), (4,), eps=0.1),
    case(
        ops.rms_norm_from,
        (2, 3, 4),
        (4,),
        eps=1e-3,
        expect=lambda x, w: (
            x / np.sqrt((x * x).mean(-1, keepdims=True) + x.dtype.type(1e-3)) * w
        ),
    ),
    case(ops.rms_norm, (2, 3, 4), normalized_shape=(3, 4), eps=1e-5),
    case(
        ops.batch_norm,
        (2, 3, 4),
        (3,),
        (3,),
        (3,),
        (3,),
        low=0.5,
        expect=lambda x, m, v, s, b: over_channels(
            (x - m[:, None]) / np.sqrt(v[:, None] + x.dtype.type(1e-5)), s, b
        ),
        rtol=1e-5,
    ),
    case(
        ops.batch_norm_train,
        (3, 2, 4),
        (2,),
        (2,),
        expect=lambda x, s, b: (
            over_channels(unit(x, (0, 2)), s, b),
            x.mean(axis=(0, 2)),
            x.var(axis=(0, 2)),
        ),
    ),
    case(
        lambda x, w, b: ops.instance_norm(x, weight=w, bias=b),
        (2, 3, 4),
        (3,),
        (3,),
        expect=lambda x, s, b: over_channels(unit(x, (2,)), s, b),
    ),
    case(
        ops.group_norm_of,
        (2, 4, 3),
        (4,),
        (4,),
        num_groups=2,
        expect=lambda x, s, b: over_channels(
            unit(x.reshape(2, 2, 6), (2,)).reshape(2, 4, 3), s, b
        ),
    ),
    case(ops.lrn, (2, 5, 3), size=3, expect=lambda x: plain_lrn(x, 3)),
    case(ops.lrn, (2, 5, 3), size=4, alpha=0.5, beta=0.5, bias=2.0),
    case(
        ops.lp_normalization,
        (3, 4),
        expect=lambda x: x / np.sqrt((x * x).sum(axis=1, keepdims=True)),
    ),
    case(
        ops.lp_normalization,
        np.array([[3.0, 4.0], [0.0, 0.0]]),
        expect=lambda x: x / 5,
        grad=False,
    ),
    case(
        ops.lp_normalization,
        (3, 4),
        axis=0,
        p=1,
        expect=lambda x: x / abs(x).sum(axis=0, keepdims=True),
    ),
    case(
        ops.mean_variance_normalization,
        (2, 2, 3, 2),
        expect=lambda x: unit(x, (0, 2, 3), 0),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_channels_with_statistics_in_half_precision_move_in_single(dtype):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 3, 500)).astype(dtype)
    given = [rng.uniform(0.1, 2, 3).astype(np.float16) for _ in range(4)]
    mean, var, weight, bias = (a.astype(float).reshape(3, 1) for a in given)
    want = (x.astype(float) - mean) / np.sqrt(var + 1e-5) * weight + bias
    y = ops.batch_norm(x, *given)
    bound = {"float16": 4e-3, "float32": 2e-6}[dtype]
    assert y.dtype == dtype
    np.testing.assert_allclose(y, want, bound, bound)


def test_half_precision_is_summed_in_single():
    x = np.full((1, 4096), 100, np.float16) + np.tile(np.float16([1, -1]), 2048)
    y = ops.layer_norm(x, 4096)
    assert y.dtype == np.float16
    np.testing.assert_allclose(abs(y), 1, rtol=1e-2)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_the_gradient_of_no_example_is_empty(dtype):
    x = Tensor(np.zeros((0, 4), dtype)).require_grad()
    scale = Tensor(np.ones(4, dtype)).require_grad()
    gradients = ops.layer_norm(x, x.shape[-1:], scale).sum().backward()
    assert x.grad(gradients).shape == (0, 4)
    assert scale.grad(gradients).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("p", [1, 2])
def test_the_gradient_of_zeros_is_finite(p):
    x = Tensor(np.zeros((1, 3))).require_grad()
    gradients = ops.lp_normalization(x, p=p).sum().backward()
    assert np.isfinite(x.grad(gradients).numpy()).all()
