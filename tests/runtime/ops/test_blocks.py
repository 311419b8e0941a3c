"""Large arrays, which go block by block, give what their parts give one at a time."""

import numpy as np
import pytest

from burnish import Tensor, ops
from burnish.ops._kernels.blocks import BLOCK, blockwise, select

ROWS, WIDTH = 6, BLOCK // 2 + 3  # more than the size where blocks begin


def values(dtype, *shape):
    return (3 * np.random.default_rng(0).normal(size=shape)).astype(dtype)


CHANNELS = [values(np.float64, 4) for _ in range(3)] + [np.arange(1.0, 5)]
ELEMENTWISE = [
    *(ops.relu, ops.relu6, ops.leaky_relu, ops.elu, ops.celu, ops.gelu, ops.sigmoid),
    *(ops.silu, ops.softplus, ops.softsign, ops.hard_sigmoid, ops.hard_swish),
    *(ops.mish, ops.erf, ops.ndtr, ops.tanh),
    lambda x: ops.huber(x, np.zeros_like(x)),
    lambda x: ops.leaky_relu(x, negative_slope=1.5),
    lambda x: ops.leaky_relu(x, negative_slope=0.0),
    lambda x: ops.celu(x, alpha=0.7),
    lambda x: ops.swish(x, alpha=1.7),
    lambda x: ops.gelu(x, approximate="tanh"),
    lambda x: ops.where(x > 0, x, -2 * x),
    lambda x: ops.prelu_of(x, np.full((), 0.25, x.dtype)),
]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.__name__)
def test_elements_in_blocks(op, dtype):
    x = values(dtype, ROWS, WIDTH)
    parts = np.stack([op(row) for row in x])
    for given in (x, np.asfortranarray(x), np.repeat(x, 2, axis=1)[:, ::2]):
        whole = op(given)
        assert whole.dtype == dtype
        np.testing.assert_allclose(whole, parts, 1e-6, 1e-6)
    pulled = gradient(op, x)
    part = np.stack([gradient(op, row) for row in x])
    np.testing.assert_allclose(
        pulled, part, 2e-3 if dtype == np.float16 else 1e-5, 1e-6
    )


ALONG = [
    ops.softmax,
    ops.log_softmax,
    lambda x: ops.softmax(40 * x),  # beyond what needs no moving
    lambda x: ops.softmax(x - 1000),
    ops.layer_norm_from,
    ops.rms_norm_from,
    lambda x: ops.layer_norm_from(x, x[0, 0] * 0 + 2, x[0, 0] * 0 + 1),
]


@pytest.mark.parametrize("op", [ops.softmax, ops.log_softmax])
def test_no_axis_is_left_to_cut(op):
    """In float64, which no kernel takes."""

    def results(x, axis):
        leaf = Tensor(x).require_grad()
        y = op(leaf, axis=axis)
        return y.numpy(), leaf.grad(y.backward(Tensor(np.cos(x)))).numpy()

    x = values(np.float64, 20, BLOCK // 8)
    for got, turned in zip(results(x, 0), results(x.T, 1), strict=True):
        np.testing.assert_allclose(got, turned.T, 1e-10, 1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op", ALONG, ids=lambda op: op.__name__)
@pytest.mark.parametrize("shape", [(700, 2, 300), (5, 2, 20000)], ids=str)
def test_rows_in_blocks(op, shape, dtype):
    x = values(dtype, *shape)
    parts = np.concatenate([op(part[None]) for part in x])
    np.testing.assert_allclose(op(x), parts, 1e-5, 1e-5)
    np.testing.assert_allclose(
        gradient(op, x),
        np.concatenate([gradient(op, part[None]) for part in x]),
        1e-4,
        1e-5,
    )


def gradient(op, x):
    leaf = Tensor(x).require_grad()
    weight = np.cos(np.arange(x.shape[-1])).astype(x.dtype) + np.zeros_like(x)
    return leaf.grad(op(leaf).backward(Tensor(weight))).numpy()


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_parameters_of_norms_in_blocks(groups):
    """Their gradients are sums over all blocks."""
    x = values(np.float64, 40, 4, 1000)
    scale, bias = (Tensor(a).require_grad() for a in CHANNELS[:2])
    weight = values(np.float64, *x.shape)
    found = ops.group_norm(Tensor(x), groups, scale, bias).backward(weight)
    unit = ops.group_norm(x, groups)
    np.testing.assert_allclose(scale.grad(found), (unit * weight).sum((0, 2)), 1e-9)
    np.testing.assert_allclose(bias.grad(found), weight.sum((0, 2)), 1e-9)


def test_batch_norm_in_blocks():
    x = values(np.float64, 40, 4, 1000)
    scale, bias, mean, var = (a[:, None] for a in CHANNELS)
    want = (x - mean) / np.sqrt(var + 1e-5) * scale + bias
    np.testing.assert_allclose(
        ops.batch_norm(x, *CHANNELS[2:], *CHANNELS[:2]), want, 1e-9, 1e-9
    )


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "f2", "i4", "f4", "i8", "f8", "c8"])
def test_select_is_where(dtype):
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-9, 9, (3, 400)).astype(dtype) for _ in range(2))
    mask = rng.random((3, 400)) < 0.5
    for one, other in ((a, b), (a, 0), (0, b), (a[:1], b[:, :1]), (a, b[0, 0]), (1, 0)):
        want = np.where(mask, one, other)
        got = select(mask, one, other)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(select(mask[0], a, b), np.where(mask[0], a, b))


def test_select_passes_on_what_is_not_finite():
    x = np.tile(np.float32([np.nan, np.inf, -np.inf, -0.0]), 100)
    mask = np.arange(400) % 3 == 0
    for one, other in ((x, 0), (0, x), (x, x[::-1])):
        np.testing.assert_array_equal(
            select(mask, one, other), np.where(mask, one, other)
        )


def test_blocks_broadcast():
    x, y = values(np.float32, 5, 1, 40000), values(np.float32, 3, 1)
    np.testing.assert_array_equal(blockwise(lambda a, b: a * b, x, y), x * y)
