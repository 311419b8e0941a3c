"""Running statistics and other buffers, which get their values when a step is over."""

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, optim
from burnish.kernels import library

pytestmark = [
    pytest.mark.usefixtures("canaries"),
    pytest.mark.skipif(library() is None, reason="there is no compiler"),
]


def beside(make, steps=3):
    """The buffers and losses behind every step, planned and plain; and what it says."""
    found, report = [], ""
    for planned in (True, False):
        burnish.seed(2)
        model, step = make()
        fast = burnish.compile(step) if planned else step
        rng, made = np.random.default_rng(0), []
        for _ in range(steps):
            x = Tensor(rng.normal(size=(4, 3, 6, 5)).astype(np.float32))
            made.append(np.array(fast(x).item()))
            made += [np.array(each.data) for _, each in model.named_buffers()]
        if planned:
            report = fast.explain()
        found.append(made)
    for one, other in zip(*found, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    return report


def network(**options):
    layers = nn.Conv2d(3, 20, 3), nn.BatchNorm2d(20, **options), nn.ReLU()
    return nn.Sequential(*layers, nn.Conv2d(20, 2, 3)).to("cpu:autodiff")


@pytest.mark.parametrize("momentum", [0.1, 0.0, 1.0])
def test_running_statistics_are_records(momentum):
    def make():
        model, rule = network(momentum=momentum), optim.SGD()

        def step(x):
            loss = (model(x) ** 2).mean()
            rule.step(0.1, model, loss.backward())
            return loss

        return model, step

    assert "nothing eagerly" in beside(make)


def test_a_plain_average():
    def make():
        model, rule = network(momentum=None), optim.SGD()

        def step(x):
            loss = (model(x) ** 2).mean()
            rule.step(0.1, model, loss.backward())
            return loss

        return model, step

    assert "moved" in beside(make)


def test_a_module_that_is_called_twice():
    def make():
        model, rule = network(), optim.SGD()

        def step(x):
            loss = (model(x) ** 2).mean() + (model(x * 2) ** 2).mean()
            rule.step(0.1, model, loss.backward())
            return loss

        return model, step

    beside(make)


class Following(nn.Module):
    """A buffer that follows a value, and what is read of it before or behind."""

    def __init__(self, follow):
        self.weight = nn.Param(np.ones(3, np.float32))
        self.last = nn.Buffer(np.zeros(3, np.float32))
        self.follow = follow

    def forward(self, x):
        return self.follow(self, x.mean(axis=(0, 2, 3)) * self.weight)


def reads_before(module, y):
    before = module.last * 1.0
    module.last.assign(y.detach() * 2)
    return y + before


def reads_behind(module, y):
    module.last.assign(y.detach() * 2)
    return y + module.last


def keeps_the_weight(module, y):
    module.last.assign(module.weight.detach())
    return y * 2


def assigns_twice(module, y):
    module.last.assign(y.detach() * 2)
    module.last.assign(y.detach() * 3)
    return y


FOLLOWERS = [reads_before, reads_behind, keeps_the_weight, assigns_twice]


@pytest.mark.parametrize("follow", FOLLOWERS, ids=lambda each: each.__name__)
def test_buffers_that_follow_values(follow):
    def make():
        model, rule = Following(follow).to("cpu:autodiff"), optim.Adam()

        def step(x):
            loss = model(x).sum()
            rule.step(0.1, model, loss.backward())
            return loss

        return model, step

    assert "one plan" in beside(make)


def test_statistics_that_were_read_never_change():
    model, rule = network(), optim.SGD()

    @burnish.compile
    def step(x):
        loss = (model(x) ** 2).mean()
        rule.step(0.1, model, loss.backward())
        return loss

    x = Tensor(np.random.default_rng(0).normal(size=(4, 3, 6, 5)).astype(np.float32))
    kept = []
    for _ in range(3):
        step(x)
        kept.append([(b.data, np.array(b.data)) for _, b in model.named_buffers()])
    for array, was in (pair for each in kept for pair in each):
        np.testing.assert_array_equal(array, was)
    assert int(model[1].num_batches_tracked.data) == 3


class Remembering(nn.Module):
    """x -> x + 1, and the last x is remembered"""

    def __init__(self):
        self.last = nn.Buffer(np.zeros((3, 5), np.float32))

    def forward(self, x):
        self.last.assign(x * 2)
        return x + 1


def test_every_call_of_a_plan_for_inference_assigns():
    model = Remembering()
    fast = burnish.compile(model)
    for i in range(4):
        x = np.full((3, 5), i, np.float32)
        np.testing.assert_array_equal(fast(Tensor(x)).numpy(), x + 1)
        np.testing.assert_array_equal(model.last.data, 2 * x)
