"""Pooling: against windows written out, and every gradient of both orders."""

import numpy as np
import pytest

from burnish import ops
from burnish.errors import InputError
from tests.harness.operators import case


def windows(x, reduce, kernel, stride, pad=0):
    """`reduce` of each window of the last two axes, without the padding."""
    h, w = ((n + 2 * pad - kernel) // stride + 1 for n in x.shape[2:])
    rows = [[place * stride - pad for place in range(n)] for n in (h, w)]
    y = np.empty((*x.shape[:2], h, w), x.dtype)
    for i, j in np.ndindex(h, w):
        top, left = rows[0][i], rows[1][j]
        seen = x[:, :, max(top, 0) : top + kernel, max(left, 0) : left + kernel]
        y[:, :, i, j] = reduce(seen, axis=(2, 3))
    return y


CASES = [
    case(
        ops.max_pool,
        (2, 2, 6, 5),
        kernel_size=2,
        expect=lambda x: windows(x, np.max, 2, 2),
    ),
    case(
        ops.max_pool,
        (1, 2, 5, 6),
        kernel_size=3,
        stride=2,
        padding=1,
        expect=lambda x: windows(x, np.max, 3, 2, 1),
    ),
    case(ops.max_pool, (1, 2, 7), kernel_size=2, dilation=2, stride=1),
    case(ops.max_pool, (1, 1, 3, 4, 3), kernel_size=2, ceil_mode=True),
    case(ops.max_pool_with_indices, (1, 2, 5, 5), kernel_size=3, padding=1),
    case(ops.max_unpool, (2, 3), np.array([[1, 0, 7], [3, 9, 4]]), shape=(2, 5)),
    case(
        ops.avg_pool,
        (2, 2, 6, 5),
        kernel_size=2,
        expect=lambda x: windows(x, np.mean, 2, 2),
    ),
    case(
        ops.avg_pool,
        (1, 2, 5, 6),
        kernel_size=3,
        stride=2,
        padding=1,
        expect=lambda x: windows(x, np.mean, 3, 2, 1),
    ),
    case(
        ops.avg_pool,
        (1, 2, 5, 6),
        kernel_size=3,
        stride=2,
        padding=1,
        count_include_pad=True,
        expect=lambda x: windows(x, np.sum, 3, 2, 1) / x.dtype.type(9),
    ),
    case(ops.avg_pool, (1, 2, 6), kernel_size=3, stride=2, ceil_mode=True),
    case(
        ops.avg_pool,
        (1, 2, 6),
        kernel_size=3,
        stride=2,
        dilation=3,
        ceil_mode=True,
        expect=lambda x: (x[..., :1] + x[..., 3:4]) / 2,  # the third is behind the end
    ),
    case(ops.avg_pool, (1, 1, 5, 4), kernel_size=2, padding=((0, 1), (1, 0))),
    case(ops.avg_pool, (1, 1, 5, 4), kernel_size=[2, 3], padding=[[0, 1], [1, 0]]),
    case(ops.avg_pool, (1, 1, 5, 4), kernel_size=2, divisor_override=3),
    case(ops.window_spread, (1, 2, 2, 3), sizes=(5, 7), kernel_size=3, stride=2),
    case(ops.lp_pool, (1, 2, 4, 4), kernel_size=2, p=2, low=0.5),
    case(ops.lp_pool, (1, 2, 4), kernel_size=2, p=3, low=0.5),
    case(
        ops.global_avg_pool,
        (2, 3, 4, 5),
        expect=lambda x: x.mean(axis=(2, 3), keepdims=True),
    ),
    case(
        ops.global_max_pool,
        (2, 3, 4, 5),
        expect=lambda x: x.max(axis=(2, 3), keepdims=True),
    ),
    case(ops.global_lp_pool, (2, 3, 4), p=2, low=0.5),
    case(
        ops.adaptive_avg_pool,
        (1, 2, 6, 4),
        output_size=(3, 2),
        expect=lambda x: x.reshape(1, 2, 3, 2, 2, 2).mean(axis=(3, 5)),
    ),
    case(ops.adaptive_avg_pool, (1, 2, 7, 4), output_size=(3, 5)),
    case(
        ops.adaptive_max_pool,
        (1, 2, 6, 4),
        output_size=(3, None),
        expect=lambda x: x.reshape(1, 2, 3, 2, 4).max(axis=3),
    ),
    case(ops.adaptive_max_pool, (1, 2, 7), output_size=3),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


def test_indices_count_over_the_whole_tensor():
    x = np.arange(32.0).reshape(1, 2, 4, 4)
    values, places = ops.max_pool_with_indices(x, kernel_size=2)
    np.testing.assert_array_equal(x.reshape(-1)[places], values)
    _, columns = ops.max_pool_with_indices(x, kernel_size=2, storage_order=1)
    assert columns[0, 0].tolist() == [[5, 13], [7, 15]]


def test_padding_never_wins():
    x = np.full((1, 1, 2, 2), -np.inf)
    values, places = ops.max_pool_with_indices(x, kernel_size=3, stride=1, padding=1)
    assert (values == -np.inf).all()
    assert (places >= 0).all()


def test_integers_pool_too():
    x = np.array([[[-5, -7, -9]]], np.int8)
    pooled = ops.max_pool(x, kernel_size=2, padding=1, stride=1)
    assert pooled.tolist() == [[[-5, -5, -7, -9]]]


def test_no_window_starts_behind_the_input():
    x = np.ones((1, 1, 4))
    assert ops.max_pool(x, kernel_size=1, stride=3, ceil_mode=True).shape == (1, 1, 2)
    assert ops.avg_pool(x, kernel_size=2, stride=5, ceil_mode=True).shape == (1, 1, 1)


def test_a_window_larger_than_the_input_is_refused():
    with pytest.raises(InputError, match="max_pool"):
        ops.max_pool(np.zeros((1, 1, 2)), kernel_size=3)
