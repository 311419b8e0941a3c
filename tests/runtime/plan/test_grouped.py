"""Grouped convolutions as dense ones: which parts there are."""

import copy
from functools import partial

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, optim
from burnish.plan.cpu.convolution.grouped import Groups, is_split_faster, merged, split
from tests.runtime.plan.checks import same


@pytest.mark.parametrize(
    ("groups", "wide", "pays"),
    [
        (Groups(32, 4, 4), Groups(8, 16, 16), False),
        (Groups(2, 32, 48), Groups(2, 32, 48), False),
        (Groups(4, 24, 24), Groups(2, 48, 48), False),
        (Groups(3, 5, 7), Groups(1, 15, 21), False),
        (Groups(4, 68, 68), Groups(1, 272, 272), True),
        (Groups(3, 34, 16), Groups(1, 102, 48), True),
    ],
)
def test_groups(groups, wide, pays):
    assert merged(groups) == wide
    assert is_split_faster(groups) is pays
    channels = [channel for part in split(groups) for channel in part.outs]
    assert channels == list(range(groups.number * groups.outs))
    for part in split(groups):
        needed = {c // groups.outs * groups.ins for c in part.outs}
        assert part.ins.start % 16 == part.outs.start % 16 == 0
        assert all(low in part.ins for low in needed)
        assert all(low + groups.ins - 1 in part.ins for low in needed)


@pytest.mark.parametrize("special", [np.nan, np.inf])
@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(32, 32, 3, padding=1, groups=8),
        nn.Conv2d(15, 21, 3, groups=3),
        nn.Conv2d(272, 272, 1, groups=4),
        nn.Conv2d(24, 24, 3, groups=3),
        nn.ConvTranspose2d(32, 24, 3, stride=2, groups=4),
        nn.ConvTranspose2d(16, 1, 6, stride=4),
    ],
    ids=repr,
)
def test_what_is_not_finite_stays_in_its_group(layer, special):
    fast = burnish.compile(layer)
    x = np.random.default_rng(0).normal(size=(2, layer.in_channels, 9, 9))
    x = x.astype(np.float32)
    same(fast(Tensor(x)), layer(Tensor(x)))
    x[1, -1, 4, 4] = special
    with np.errstate(invalid="ignore"):
        found, wanted = (f(Tensor(x)).numpy() for f in (fast, layer))
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))
    of_first = np.s_[:, 0] if layer.out_channels > 1 else np.s_[..., :16, :]
    assert np.isfinite(wanted[of_first]).all()
    assert not np.isfinite(wanted).all()


@pytest.mark.parametrize("special", [np.nan, np.inf])
@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(32, 32, 3, padding=1, groups=8),
        nn.Conv2d(15, 21, 3, groups=3),
        nn.ConvTranspose2d(32, 24, 3, stride=2, groups=4),
    ],
    ids=repr,
)
def test_what_is_not_finite_stays_in_its_group_in_a_step(layer, special):
    x = np.random.default_rng(0).normal(size=(2, layer.in_channels, 9, 9))
    x = x.astype(np.float32)

    def step(model, x):
        y = model(x * 1.0)
        optim.SGD().step(0.1, model, y[:, 0].sum().backward())
        return y

    made = []
    for compiled in (True, False):
        model = copy.deepcopy(layer).to("cpu:autodiff")
        fast = (
            burnish.compile(partial(step, model)) if compiled else partial(step, model)
        )
        same_step = fast(Tensor(x))
        x[1, -1, 4, 4], before = special, x[1, -1, 4, 4]
        with np.errstate(invalid="ignore"):
            y = fast(Tensor(x))
        x[1, -1, 4, 4] = before
        made.append([a.numpy() for a in (same_step, y, *model.parameters())])
        assert not compiled or "one plan" in fast.explain()
    for found, wanted in zip(*made, strict=True):
        np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))
        at = np.isfinite(wanted)
        np.testing.assert_allclose(found[at], wanted[at], rtol=1e-4, atol=1e-4)
    assert np.isfinite(made[0][1][:, 0]).all()
