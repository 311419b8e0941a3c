"""Packed weights: one array for all plans that make the same one."""

from __future__ import annotations

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops
from tests.runtime.plan.checks import same

RANDOM = np.random.default_rng(0)


def tensor(*shape):
    return Tensor(RANDOM.standard_normal(shape).astype(np.float32))


class Rounds(nn.Module):
    """Its layers again and again, behind a question each time."""

    def __init__(self):
        self.layers = [nn.Linear(64, 64) for _ in range(3)]

    def forward(self, x):
        for _ in range(4):
            for layer in self.layers:
                x = ops.tanh(layer(x))
            if x.max() > 5:
                return x
        return x


def packed(fast):
    """The packed weights in the plans of a compiled function, each array once."""
    plans = [n.plan for known in fast.known for n in getattr(known, "nodes", ())]
    plans += [known for known in fast.known if not hasattr(known, "nodes")]
    arrays = [a for plan in plans if plan for a in plan.constants.values()]
    return list({id(a): a for a in arrays if a.nbytes >= 64 * 64 * 4}.values())


def held(fast):
    """Bytes of packed weights, each array once."""
    return sum(a.nbytes for a in packed(fast))


@pytest.mark.parametrize(
    ("model", "rows"),
    [(Rounds(), (2,)), (Rounds(), (2, 3)), (Rounds().layers[0], (2, 3, 4))],
    ids=("behind questions", "and signatures", "signatures"),
)
def test_plans_share_what_they_pack(model, rows):
    fast = burnish.compile(model)
    inputs = [tensor(n, 64) for n in rows]
    weights = sum(p.size * 4 for p in model.parameters() if len(p.shape) == 2)
    for factor in (1, 2):
        for name, param in model.named_tensors():
            if name.endswith("weight"):
                param.assign(param.data * factor)
        for x in inputs + inputs:
            same(fast(x), model(x))
        # With vectors of 8 numbers, a few rows more may take tiles of another form.
        forms = {a.shape for a in packed(fast)}
        assert held(fast) == weights * len(forms)


def test_parts_of_one_weight_are_told_apart():
    """Parts of one shape, that differ in one number or are equal."""
    weight = nn.Param(np.ones((64, 128), np.float32))
    weight.data[0, 100] = 7

    def function(x):
        first = x @ weight[:, :64]
        return (first, x @ weight[:, 64:]) if first.sum() > 0 else (first, first)

    fast = burnish.compile(function)
    for x in (tensor(3, 64), tensor(5, 64)):
        for each in (x, -x, x):
            for made, wanted in zip(fast(each), function(each), strict=True):
                same(made, wanted)
