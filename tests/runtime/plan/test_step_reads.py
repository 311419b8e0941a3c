"""Numbers that planned steps of training read in Python, and that change."""

from __future__ import annotations

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, optim

from .step_reads import READS, follows


@pytest.mark.parametrize("made", READS.values(), ids=READS)
def test_steps_read_anew_what_changes(made):
    fast = follows("cpu", made, [0.5] * 4 + [0.1] * 3 + [0.5] * 4)
    assert "one plan" in fast.explain()


def test_the_calls_of_a_step_are_counted_in_its_own_variable():
    net, rule, count = nn.Linear(3, 2).to("cpu:autodiff"), optim.AdamW(), 0

    def step(x):
        nonlocal count
        count += 1
        loss = (net(x) ** 2).mean()
        rule.step(1e-2 / count, net, loss.backward())
        return loss

    fast, x = burnish.compile(step), Tensor(np.ones((2, 3), np.float32))
    for i in range(14):
        fast(x)
        assert count == i + 1
    assert "change too often" in fast.explain()


class State:
    count, seen = 0, 0

    def __init__(self):
        self.losses = []


@pytest.mark.parametrize("kind", ["no plan", "a plan"])
def test_a_refused_capture_leaves_what_the_step_counts_to_the_call(kind):
    net, rule = nn.Linear(3, 2).to("cpu:autodiff"), optim.SGD()
    state, made = State(), {"a": 0}

    def step(x):
        nonlocal made
        state.count += 1
        made = {"a": made["a"] + 1}
        loss = (net(x) ** 2).mean()
        rule.step(1e-2, net, loss.backward())
        if kind == "no plan":
            state.seen = loss.item()  # no capture can know it
        state.losses.append(state.count)
        return loss

    fast, x = burnish.compile(step), Tensor(np.ones((2, 3), np.float32))
    for i in range(14):
        fast(x)
        assert (state.count, made) == (i + 1, {"a": i + 1})
        assert state.losses == [*range(1, i + 2)]
