"""Attention: the formula, gradients of both orders, masks, shared heads."""

import numpy as np
import pytest

from burnish import Tensor, ops
from burnish.errors import InputError
from tests.harness.operators import case

attention = ops.scaled_dot_product_attention
MASK = np.array([[True, False, True, True], [False, True, False, True]] * 2)[:3]


def plain(q, k, v, mask=None, scale=None, softcap=0):
    scores = q @ k.swapaxes(-1, -2) * q.dtype.type(scale or q.shape[-1] ** -0.5)
    if softcap:
        scores = np.tanh(scores / q.dtype.type(softcap)) * q.dtype.type(softcap)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf).astype(q.dtype)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True) @ v


CASES = [
    case(attention, (3, 2), (4, 2), (4, 5), expect=plain),
    case(attention, (2, 3, 2), (2, 4, 2), (2, 4, 3), MASK, expect=plain),
    case(attention, (1, 3, 2), (1, 4, 2), (1, 4, 3), (3, 4)),
    case(
        attention,
        (2, 3, 2),
        (2, 3, 2),
        (2, 3, 2),
        is_causal=True,
        expect=lambda q, k, v: plain(q, k, v, np.tri(3, dtype=bool)),
    ),
    case(
        attention,
        (3, 2),
        (4, 2),
        (4, 2),
        scale=0.3,
        softcap=2.0,
        expect=lambda q, k, v: plain(q, k, v, scale=0.3, softcap=2.0),
    ),
    case(
        attention,
        (1, 4, 3, 2),
        (1, 2, 4, 2),
        (1, 2, 4, 3),
        expect=lambda q, k, v: plain(q, k.repeat(2, axis=1), v.repeat(2, axis=1)),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


def test_a_query_without_keys_gets_zeros_and_finite_gradients():
    rng = np.random.default_rng(0)
    mask = np.array([[True, True], [False, False]])
    q, k, v = (Tensor(rng.normal(size=(2, 2))).require_grad() for _ in range(3))
    y = attention(q, k, v, mask)
    assert (y.numpy()[1] == 0).all()
    gradients = y.sum().backward()
    for tensor in (q, k, v):
        assert np.isfinite(tensor.grad(gradients).numpy()).all()


def test_masks_of_shared_heads():
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(2, h, 3, 4)) for h in (4, 2, 2))
    mask = rng.random((2, 4, 3, 3)) < 0.7
    mask[..., 0] = True
    want = plain(q, k.repeat(2, axis=1), v.repeat(2, axis=1), mask)
    np.testing.assert_allclose(attention(q, k, v, mask), want)


def test_heads_that_cannot_be_shared_are_refused():
    with pytest.raises(InputError, match="got 3 and 2"):
        attention(np.ones((3, 2, 2)), np.ones((2, 2, 2)), np.ones((2, 2, 2)))
