"""First calls of a GPU's training steps, on NumPy: which no graph can repeat."""

import contextlib
import types

import numpy as np
import pytest

from burnish import Tensor, nn
from burnish.plan.cuda.stepping.step import StepPlan

ROOM = types.SimpleNamespace(
    precision="fp32", scale=None, computing=contextlib.nullcontext
)
X = Tensor(np.ones((2, 4), np.float32))


def first(step, *args):
    """The plan of a step after its first call, with X and other arguments."""
    plan = StepPlan(step, ROOM, {}, False)
    plan((X, *args), {})
    return plan


def trained(change=lambda loss: None):
    net = nn.Linear(4, 3).fork("cpu:autodiff")

    def step(x, *given):
        loss = net(x).mean()
        net.bias.assign(net.bias.grad(loss.backward()))
        change(loss, *given)
        return loss

    return step


def test_a_step_that_changes_parameters_alone_has_a_graph():
    data, cache = [1, 2], {"array": X.data}
    plan = first(trained(lambda loss, *given: cache.get(data[0])), [X], 0.5)
    assert plan.why == ""
    assert not plan.reads_numbers


@pytest.mark.parametrize("kind", [list, dict, set])
def test_containers_of_closures(kind):
    seen = kind()

    def note(loss):
        if kind is dict:
            seen[len(seen)] = 1
        else:
            getattr(seen, "append" if kind is list else "add")(1)

    assert "changes the items of 'seen'" in first(trained(lambda t: note(t))).why
    assert len(seen) == 1


def test_containers_of_the_object_of_a_method():
    class Trainer:
        def __init__(self):
            self.counts, self.step_of = {"steps": 0}, trained()

        def step(self, x):
            self.counts["steps"] += 1
            return self.step_of(x)

    trainer = Trainer()
    assert "changes the items of 'self.counts'" in first(trainer.step).why
    assert trainer.counts == {"steps": 1}


def test_containers_of_arguments_change_for_the_caller():
    inner = [X]
    log, state = [1.5, inner], {"step": 0, "rate": 0.5}

    def change(loss, log, state):
        log.append(state["rate"])
        inner_now = log[1]
        inner_now.append(7)
        state["step"] += 1
        del state["rate"]

    plan = first(trained(change), log, state)
    assert "changes the items of 'argument 1'" in plan.why
    assert log == [1.5, inner, 0.5]
    assert log[1] is inner
    assert inner == [X, 7]
    assert state == {"step": 1}


def test_containers_change_until_an_error():
    def change(loss, log):
        log.append(1)
        raise ValueError("stopped")

    log = []
    with pytest.raises(ValueError, match="stopped"):
        first(trained(change), log)
    assert log == [1]
