"""Convolutions of 3 x 3 taps by Winograd's algorithm."""

from __future__ import annotations

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops
from burnish.errors import InputError
from tests.runtime.plan.checks import check, same
from tests.runtime.plan.test_kernels import Draw, exact

ROUNDED = 1e-5
"""The tolerance from which on it is used."""

ACTS = (ops.relu, ops.hard_swish, ops.sigmoid, lambda x: ops.swish(x, 1.0))


def kinds(fast):
    return [step.kind for plan in fast._plans.values() for step in plan.steps]


@pytest.fixture
def threads():
    """Two threads, so that records are split."""
    burnish.set_num_threads(2)
    yield
    burnish.set_num_threads(None)


@pytest.mark.usefixtures("canaries")
@pytest.mark.parametrize("seed", range(12))
def test_odd_sizes_and_channels(seed, threads):
    d = Draw(seed)
    ins, outs = d.choice(32, 33, 64, 100), d.choice(32, 47, 96)
    x = d.tensor(d.number(1, 3), ins, d.number(8, 21), d.number(8, 21))
    weight, bias = d.tensor(outs, ins, 3, 3) / (9 * ins) ** 0.5, d.tensor(outs)
    padding = tuple((d.number(0, 2), d.number(0, 2)) for _ in range(2))
    act, first = d.choice(*ACTS), d.tensor(ins, ins, 1, 1) / ins**0.5
    other = d.tensor(*ops.conv(x, weight, padding=padding).shape)

    def function(x, other, weight, bias, first):
        y = ops.conv(ops.conv(x, first), weight, bias, padding=padding)
        return act(y + other) if seed % 2 else act(y)

    fast = exact(function, x, other, constants=(weight, bias, first), tolerance=ROUNDED)
    assert "winograd" in kinds(fast)


def test_it_is_used_where_the_tolerance_allows_it():
    d = Draw(0)
    conv = nn.Conv2d(32, 32, 3, padding=1)
    x = d.tensor(1, 32, 12, 12)
    assert "winograd" not in kinds(check(conv, x))
    assert "winograd" not in kinds(check(conv, x, tolerance=1e-6))
    assert "winograd" in kinds(check(conv, x, tolerance=ROUNDED))
    without = check(conv, x, tolerance=ROUNDED, off=("winograd",))
    assert "winograd" not in kinds(without)


@pytest.mark.parametrize("tolerance", [-1e-5, 1.0, float("nan")])
def test_a_tolerance_is_a_share(tolerance):
    with pytest.raises(InputError, match="expected a tolerance from 0 to below 1, got"):
        burnish.compile(ops.relu, tolerance=tolerance)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [(0, 0), (5, 6), (11, 11)])
def test_what_is_not_finite_stays_where_it_is(special, place):
    d = Draw(1)
    conv = nn.Conv2d(32, 32, 3, padding=1)
    fast = burnish.compile(conv, tolerance=ROUNDED)
    x = d.tensor(1, 32, 12, 12)
    same(fast(x), conv(x))
    array = x.data.copy()
    array[0, 7, *place] = special
    with np.errstate(invalid="ignore"):
        same(fast(Tensor(array)), conv(Tensor(array)))
    same(fast(x), conv(x))


def test_errors_are_at_most_four_times_a_direct_sum_s():
    d = Draw(2)
    x, weight = d.tensor(1, 256, 14, 14), d.tensor(64, 256, 3, 3)

    def function(x):
        return ops.conv(x, weight, padding=1)

    wide = [Tensor(each.data.astype(np.float64)) for each in (x, weight)]
    wanted = ops.conv(*wide, padding=1).data
    rounded, direct = (
        np.sqrt((burnish.compile(function, tolerance=t)(x).data - wanted) ** 2).mean()
        for t in (ROUNDED, 0)
    )
    assert rounded < 4 * direct
    assert rounded < 2e-7 * abs(wanted).max()
