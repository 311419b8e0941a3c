"""Optimizers by kernels of the C library, as the plain form updates."""

from __future__ import annotations

import numpy as np
import pytest

from burnish import nn, optim
from burnish.kernels import direct
from tests.runtime.ops.kernels import (
    same_for_any_threads,
    values,
)

pytestmark = pytest.mark.usefixtures("launched")


RULES = {
    "plain": ("SGD", {}),
    "momentum": ("SGD", {"momentum": 0.9, "dampening": 0.2, "weight_decay": 0.1}),
    "nesterov": ("SGD", {"momentum": 0.8, "nesterov": True, "maximize": True}),
    "Adam": ("Adam", {}),
    "Adam with decay": ("Adam", {"weight_decay": 0.1, "amsgrad": True}),
    "Adam, up": ("Adam", {"maximize": True, "betas": (0.5, 0.8), "eps": 1e-3}),
    "AdamW": ("AdamW", {}),
    "cautious": ("AdamW", {"cautious_weight_decay": True, "weight_decay": 0.3}),
}


class Bag(nn.Module):
    """Parameters of odd sizes."""

    def __init__(self):
        shapes = [(1,), (7, 3), (33,), (2, 5, 9)]
        self.held = [nn.Param(values(*each, seed=i)) for i, each in enumerate(shapes)]


@pytest.mark.parametrize(("name", "options"), RULES.values(), ids=RULES)
def test_optimizers(name, options, launched, monkeypatch):
    def trained():
        bag, rule = Bag(), getattr(optim, name)(**options)
        for step in range(4):
            grads = {
                path: values(*param.shape, seed=10 * step + i)
                for i, (path, param) in enumerate(bag.named_parameters())
            }
            rule.step(0.1, bag, optim.GradientsParams(grads))
        return [np.array(param.data) for param in bag.parameters()]

    ours = same_for_any_threads(trained)
    assert launched == [name.lower().rstrip("w")] * len(launched) != []
    launched.clear()
    monkeypatch.setattr(direct, "usable", lambda: None)
    for one, plain in zip(ours, trained(), strict=True):
        np.testing.assert_allclose(one, plain, 1e-5, 4e-6)
    assert not launched


def test_a_rule_of_the_users_is_traced(launched):
    class Half(optim.SGD):
        def write(self, new, weight, grad, state, rate):
            super().write(new, weight, grad, state, rate / 2)

    bag = Bag()
    before = [np.array(param.data) for param in bag.parameters()]
    grads = {path: np.ones_like(param.data) for path, param in bag.named_parameters()}
    Half().step(0.5, bag, optim.GradientsParams(grads))
    for one, old in zip(bag.parameters(), before, strict=True):
        np.testing.assert_allclose(one.data, old - 0.25, 1e-6)
    assert launched == ["formula"]
