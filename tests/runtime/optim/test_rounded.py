"""Gradients in half precision that are cast when somebody asks for them."""

import copy
import gc
import weakref

import numpy as np
import pytest

from burnish import Tensor, nn, optim
from burnish.autodiff import Gradients
from burnish.optim import GradientsAccumulator, GradientsParams
from burnish.optim.core import rounded

HALF, SINGLE = np.dtype(np.float16), np.dtype(np.float32)


@pytest.fixture
def casts(monkeypatch):
    """How many arrays each launch has cast."""
    counts = []

    def cast_all(arrays, dtype):
        counts.append(len(arrays))
        return [a.astype(dtype) for a in arrays]

    monkeypatch.setattr(rounded, "cast_all", cast_all)
    return counts


@pytest.fixture
def net():
    return nn.Linear(3, 2).to("cpu:autodiff")


def gradients(net, halves):
    """Gradients as a step in half precision leaves them: those of `halves` rounded."""
    found = net(Tensor(np.eye(3, dtype=SINGLE))).sum().backward()
    assert isinstance(found, Gradients)
    for name, p in net.named_parameters():
        if name in halves:
            made = found.get(p)
            found._found[p.node] = Tensor.wrap(made.numpy().astype(HALF), made.device)
    rounded.keep_rounded(found, HALF)
    return found


def test_they_are_cast_together_when_one_is_asked_for(casts, net):
    found = gradients(net, ("weight", "bias"))
    weight, bias = found.get(net.weight), found.get(net.bias)
    assert weight.shape == (2, 3)
    assert weight.dtype == SINGLE
    assert not casts
    made = weight * 2
    assert casts == [2]
    assert type(made) is Tensor
    np.testing.assert_array_equal(made.numpy(), np.full((2, 3), 2, SINGLE))
    assert bias.numpy().dtype == SINGLE
    assert casts == [2]


def test_others_are_the_same_gradients(casts, net):
    found = gradients(net, ("weight",))
    assert type(found.get(net.bias)) is Tensor
    assert found.get(net.weight).numpy().dtype == SINGLE
    assert casts == [1]


def test_a_rule_may_have_them_in_half_precision(casts, net):
    found = GradientsParams.from_grads(gradients(net, ("weight",)), net)
    assert found.half("weight").dtype == HALF
    assert found.half("bias").dtype == SINGLE
    assert not casts
    assert found["weight"].dtype == SINGLE
    assert casts == [1]


def test_sums_of_them_are_float32(casts, net):
    sums = GradientsAccumulator()
    for _ in range(2):
        sums.accumulate(GradientsParams.from_grads(gradients(net, ("weight",)), net))
    total = sums.grads()
    assert total.half("weight").dtype == SINGLE
    np.testing.assert_array_equal(total["weight"], np.full((2, 3), 2, SINGLE))


RULES = [optim.SGD(), optim.Adam(clip=optim.ClipNorm(0.5))]


@pytest.mark.parametrize("rule", RULES, ids=["sgd", "clipped"])
def test_rules_step_with_their_values(casts, net, rule):
    other = nn.Linear(3, 2).to("cpu:autodiff")
    other.load_state_dict(net.state_dict())
    plain = other(Tensor(np.eye(3, dtype=SINGLE))).sum().backward()
    copy.deepcopy(rule).step(0.1, net, gradients(net, ("weight", "bias")))
    copy.deepcopy(rule).step(0.1, other, plain)
    for (_, one), (_, two) in zip(
        net.named_parameters(), other.named_parameters(), strict=True
    ):
        np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=1e-6)


def test_nothing_keeps_their_memory(net):
    found = gradients(net, ("weight", "bias"))
    gone = weakref.ref(found.get(net.weight))
    gc.disable()
    try:
        del found
        assert gone() is None
    finally:
        gc.enable()
