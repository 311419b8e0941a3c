"""Attention of a step as one operator: when it is one, without a GPU."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from burnish import Tensor, ops
from burnish.backend.cuda.attention import attention as kernels
from burnish.errors import ArgumentError
from burnish.plan.cuda.stepping import attended


def heads(dtype="f4", seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(2, 3, 5, 4)).astype(dtype) for _ in range(3)]


@pytest.mark.parametrize(
    ("dtype", "recorded", "is_asked"),
    [
        ("f4", (0, 1, 2), True),
        ("f4", (2,), True),
        ("f4", (), False),  # one kernel keeps no weights
        ("f2", (), True),
    ],
)
def test_weights_are_kept_for_gradients_alone(monkeypatch, dtype, recorded, is_asked):
    asked = []
    monkeypatch.setattr(attended, "attended_for_gradient", lambda *_: asked.append(1))
    given = [Tensor(array) for array in heads(dtype)]
    given = [x.require_grad() if i in recorded else x for i, x in enumerate(given)]
    assert attended.attention(*given) is None
    assert bool(asked) == is_asked


def test_heads_side_by_side_are_copied_once(monkeypatch):
    """The products of the gradients would copy them anew."""
    seen = []

    def weights_of(q, k, v, *_):
        seen.extend(x.flags.c_contiguous for x in (q, k, v))
        weights = np.ones((*q.shape[:-1], k.shape[-2]), np.float32) / k.shape[-2]
        return weights @ v, weights

    monkeypatch.setattr(attended, "attended_for_gradient", weights_of)
    monkeypatch.setattr(attended, "contiguous", np.ascontiguousarray)
    rows = [Tensor(x.swapaxes(1, 2).copy()).require_grad() for x in heads()]
    y = attended.attention(*(x.swapaxes(1, 2) for x in rows))
    assert seen == [True] * 3
    found = y.backward(np.ones(y.shape, np.float32))
    assert found.get(rows[2]).shape == rows[2].shape
    one = [Tensor(x[:1].swapaxes(1, 2).copy()).require_grad() for x in heads()]
    attended.attention(*(x.swapaxes(1, 2) for x in one))
    assert seen[3:] == [False] * 3  # one example: products read its heads in place


@pytest.mark.parametrize("missing", [None, 0, 1, 2, 3])
def test_operators_do_what_a_product_is_missing_for(monkeypatch, missing):
    q, k, v = heads()
    g = heads(seed=1)[0]
    weights = ops.softmax(0.3 * q @ k.mT)
    calls = []

    def product(a, b, scale=1.0):
        calls.append(a)
        return None if len(calls) - 1 == missing else a @ b * scale

    def softmax_gradient(g, y, axis, form):
        return y * (g - (g * y).sum(axis, keepdims=True))

    monkeypatch.setattr(kernels.cublaslt, "matmul", product)
    monkeypatch.setattr(kernels, "softmax_gradient", softmax_gradient)
    monkeypatch.setattr(kernels, "contiguous", np.ascontiguousarray)
    rule, _ = attended.attended.rules_on["cupy"]["q"]
    y, options = (weights @ v, weights), {"scale": 0.3, "is_causal": False}
    found = rule((g, None), y, q, k, v, None, **options)
    if missing is not None:
        assert found is NotImplemented
        return
    exact = [Tensor(x.astype(float)).require_grad() for x in (q, k, v)]
    wanted = ops.scaled_dot_product_attention(*exact, scale=0.3).backward(g)
    for made, own in zip(found, exact, strict=True):
        np.testing.assert_allclose(made, wanted.get(own).data, atol=1e-5)


@pytest.mark.parametrize(
    ("capability", "size", "is_one"),
    [("90", 64, True), ("80", 16, True), ("86", 64, False), ("90", 80, False)],
)
def test_one_kernel_where_parts_are_fast(monkeypatch, capability, size, is_one):
    device = SimpleNamespace(compute_capability=capability)
    fake = SimpleNamespace(
        ndarray=np.ndarray, cuda=SimpleNamespace(Device=lambda: device)
    )
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.setattr(kernels, "_in_packs", lambda array: True)
    made = []

    def kernel(template, **_):
        made.append(template)
        return SimpleNamespace(kernel=None)

    monkeypatch.setattr(kernels, "kernel", kernel)
    for name in ("passed", "by_value"):
        monkeypatch.setattr(kernels, name, lambda *numbers: numbers)
    q = np.zeros((2, 3, 70, size), np.float32)
    run = kernels._in_one(q, q, q, None, ("", (0, 0, 0, 0)), 0.3, False)
    assert (run is not None) is is_one
    assert made == ["attention_parts"] * is_one


def test_words_that_are_not_known():
    q, k, v = map(Tensor, heads())
    with pytest.raises(ArgumentError, match="dropout_p"):
        attended.attention(q, k, v, dropout_p=0.1)
    with pytest.raises(ArgumentError, match="'v'"):
        attended.attention(q, k)
