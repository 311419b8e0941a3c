"""Convolutions of small maps, with a border of zeros around them and without."""

from __future__ import annotations

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops
from burnish.plan.cpu.convolution import halo
from tests.runtime.plan.checks import check

RANDOM = np.random.default_rng(4)

LAYERS = {
    "3 x 3": (nn.Conv2d(32, 48, 3, padding=1), (1, 32, 7, 7)),
    "a batch": (nn.Conv2d(16, 16, 3, padding=1), (3, 16, 4, 5)),
    "stride 2": (nn.Conv2d(32, 32, 3, 2, padding=1), (1, 32, 14, 13)),
    "stride 3 of less": (nn.Conv2d(16, 16, 2, 3, padding=1), (2, 16, 9, 10)),
    "channels that fill no block": (nn.Conv2d(37, 21, 3, padding=1), (2, 37, 5, 5)),
    "groups of blocks": (nn.Conv2d(64, 32, 3, padding=1, groups=2), (1, 64, 6, 6)),
    "groups of 8": (nn.Conv2d(64, 64, 3, padding=1, groups=8), (1, 64, 6, 6)),
    "groups of 24": (nn.Conv2d(48, 72, 3, padding=1, groups=2), (2, 48, 6, 6)),
    "dilation": (nn.Conv2d(32, 32, 3, padding=2, dilation=2), (1, 32, 7, 7)),
    "a wide kernel": (nn.Conv2d(16, 32, (5, 3), padding=(2, 1)), (1, 16, 6, 7)),
    "one axis": (nn.Conv1d(32, 32, 5, padding=2), (2, 32, 9)),
    "three axes": (nn.Conv3d(16, 32, 3, padding=1), (2, 16, 3, 4, 5)),
    "one pixel": (nn.Conv2d(16, 16, 3, padding=1), (1, 16, 1, 1)),
}


@pytest.mark.parametrize("gain", [0.0, 1e9], ids=["always", "never"])
@pytest.mark.parametrize("name", LAYERS)
def test_both_ways_give_the_same(name, gain, monkeypatch):
    layer, shape = LAYERS[name]
    monkeypatch.setattr(halo, "_GAIN", gain)
    x = Tensor(RANDOM.standard_normal(shape).astype(np.float32))
    fast = check(layer, x)
    assert "eagerly" not in fast.explain()


@pytest.mark.parametrize("gain", [0.0, 1e9], ids=["always", "never"])
def test_a_sum_behind_it_and_padding_of_one_side(gain, monkeypatch):
    monkeypatch.setattr(halo, "_GAIN", gain)
    weight = nn.Param(RANDOM.standard_normal((32, 32, 3, 3)).astype(np.float32))

    def function(x):
        y = ops.conv(x, weight, None, padding=((2, 0), (1, 1)))
        return ops.relu(y + x)

    check(function, Tensor(RANDOM.standard_normal((2, 32, 5, 6)).astype(np.float32)))


def copies(layer, *shape):
    """How many copies a plan of the layer has; two are for layouts."""
    x = Tensor(RANDOM.standard_normal(shape).astype(np.float32))
    plan = burnish.compile(layer).planned(x)
    return [step.kind for step in plan.steps].count("copy")


def test_large_maps_have_no_border(monkeypatch):
    layer = nn.Conv2d(32, 32, 3, padding=1)
    assert copies(layer, 1, 32, 40, 40) == 2
    monkeypatch.setattr(halo, "_GAIN", 0.0)
    assert copies(layer, 1, 32, 40, 40) == 7
    assert copies(nn.Conv2d(32, 32, 3), 1, 32, 40, 40) == 2  # nothing is around it
