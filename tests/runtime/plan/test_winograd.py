"""Convolutions of 3 x 3 taps by Winograd's algorithm."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops, optim
from burnish.errors import InputError
from tests.runtime.plan.checks import Draw, check, exact, same
from tests.runtime.plan.gradients import Held

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


GRADIENTS = {"winograd": 1, "winograd_pack": 1, "winograd_weight": 1}
ALL = {"winograd": 2, "winograd_pack": 2, "winograd_weight": 1}
"""Records of the algorithm in a step of one convolution."""

TRAINED = [  # images, channels in and out, height, width, padding
    (2, 32, 32, 12, 12, 1),
    (3, 33, 47, 9, 14, 1),
    (2, 100, 64, 11, 8, 0),
    (2, 64, 96, 10, 10, 2),
    (16, 48, 80, 5, 6, 1),
    (5, 40, 36, 21, 13, 2),
]


def stepped(sizes, dtype=np.float32, x=None, frozen=False, **options):
    """Gradients of a step to weight, bias and input, its loss, and its records.

    Those of the algorithm are counted by kind. In float64 the step is plain.
    """
    images, ins, outs, *size, padding = sizes
    random = np.random.default_rng(5)
    arrays = {
        "weight": random.normal(size=(outs, ins, 3, 3)) / ins,
        "bias": random.normal(size=outs),
        "x": random.normal(size=(images, ins, *size)) if x is None else x,
    }
    held = Held(arrays, dtype)
    held.weight.trainable = not frozen
    held.to("cpu:autodiff")
    names = [name for name in arrays if not (frozen and name == "weight")]

    def step(shift):
        y = ops.conv(held.x * 1.0, held.weight, held.bias, padding=padding)
        loss = (ops.relu(y + shift) ** 2).sum()
        found = loss.backward()
        optim.SGD().step(0.0, held, found)
        return [*(getattr(held, name).grad(found) for name in names), loss]

    shift = Tensor(np.zeros((), dtype))
    if dtype is np.float64:
        return [each.numpy() for each in step(shift)], {}
    fast = burnish.compile(step, **options)
    for _ in range(2):
        found = [each.numpy() for each in fast(shift)]
    assert "nothing eagerly" in fast.explain(), fast.explain()
    used = Counter(each.kind for each in fast._steps.known[0]._plan.steps)
    return found, {kind: n for kind, n in used.items() if "winograd" in kind}


@pytest.mark.usefixtures("canaries")
@pytest.mark.parametrize(("tolerance", "records"), [(0, GRADIENTS), (ROUNDED, ALL)])
@pytest.mark.parametrize("sizes", TRAINED)
def test_steps_of_training(sizes, tolerance, records, threads):
    found, used = stepped(sizes, tolerance=tolerance)
    assert used == records
    wanted, _ = stepped(sizes, np.float64)
    for ours, exact_one in zip(found, wanted, strict=True):
        scale = np.abs(exact_one).max()
        np.testing.assert_allclose(ours, exact_one, rtol=0, atol=1e-5 * scale)
    burnish.set_num_threads(1)
    for one, two in zip(stepped(sizes, tolerance=tolerance)[0], found, strict=True):
        assert one.tobytes() == two.tobytes()


def test_steps_without_it():
    direct, used = stepped(TRAINED[0], off=("winograd_gradients",))
    assert not used
    found, _ = stepped(TRAINED[0])
    assert found[-1] == direct[-1]  # what a step computes is summed directly
    for ours, other in zip(found, direct, strict=True):
        np.testing.assert_allclose(ours, other, rtol=0, atol=1e-5 * abs(other).max())


def test_a_frozen_weight_of_a_step_is_summed_directly():
    _, used = stepped(TRAINED[0], frozen=True, tolerance=ROUNDED)
    assert not used


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_reaches_the_weight_s_gradient(special):
    x = np.random.default_rng(6).normal(size=(2, 32, 12, 12))
    x[1, 7, 5, 6] = special
    with np.errstate(invalid="ignore", over="ignore"):
        plain, _ = stepped(TRAINED[0], np.float64, x=x)
        found, _ = stepped(TRAINED[0], x=x)
    lost = ~np.isfinite(plain[0])
    assert lost[:, 7].all()
    assert not np.isfinite(found[0][lost]).any()


@pytest.mark.parametrize("records", ["gradients", "update"])
def test_results_of_a_step_are_exact_where_its_weights_are_not_updated(records):
    """A step without effects may fault, as inference may."""
    conv = nn.Conv2d(32, 32, 3, padding=1).to("cpu:autodiff")
    x = Draw(3).tensor(2, 32, 12, 12)

    def step(x):
        y = conv(x)
        found = (y**2).sum().backward()
        if records == "update":
            optim.SGD().step(0.0, conv, found)
        return y.detach(), conv.weight.grad(found)

    y, _ = burnish.compile(step)(x)
    direct, _ = burnish.compile(step, off=("winograd_gradients",))(x)
    assert y.numpy().tobytes() == direct.numpy().tobytes()


def test_gradients_of_what_is_not_finite_are_the_plain_call_s():
    conv = nn.Conv2d(32, 32, 3, padding=1).to("cpu:autodiff")
    x = Draw(4).tensor(2, 32, 12, 12).data
    x[0, 3, 5, 5] = np.nan

    def gradient(x):
        return conv.weight.grad((conv(x) ** 2).sum().backward())

    fast = burnish.compile(gradient, tolerance=ROUNDED)
    same(fast(Tensor(x)), gradient(Tensor(x)))


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("depth", "channels", "shape"),
    [(6, 64, (1, 64, 12, 12)), (5, 128, (1, 32, 10, 10)), (4, 48, (4, 33, 15, 13))],
)
def test_a_whole_step_s_gradients_err_at_most_1_3_times_as_pytorch_s(
    depth, channels, shape
):
    import torch

    def theirs(arrays, x, dtype):
        weights = [torch.tensor(each, dtype=dtype) for each in arrays]
        y = torch.tensor(x, dtype=dtype)
        for weight in weights:
            weight.requires_grad = True
            y = torch.nn.functional.silu(torch.conv2d(y, weight, padding=1))
        (y**2).mean().backward()
        return [each.grad.double().numpy() for each in weights]

    def ours(arrays, x):
        held = Held({f"w{i}": each for i, each in enumerate(arrays)}, np.float32)
        held.to("cpu:autodiff")
        weights = [getattr(held, f"w{i}") for i in range(depth)]

        def step(y):
            for weight in weights:
                y = ops.swish(ops.conv(y, weight, padding=1), 1.0)
            found = (y**2).mean().backward()
            optim.SGD().step(0.0, held, found)
            return [weight.grad(found) for weight in weights]

        return [each.numpy() for each in burnish.compile(step)(Tensor(x))]

    def apart(found, exact):
        gap = sum(((a - b) ** 2).sum() for a, b in zip(found, exact, strict=True))
        return np.sqrt(gap / sum((each**2).sum() for each in exact))

    ratios = []
    for seed in range(3):
        random = np.random.default_rng(seed)
        widths = shape[1], *[channels] * depth
        arrays = [
            (random.normal(size=(outs, ins, 3, 3)) / (5 * ins) ** 0.5).astype("f4")
            for ins, outs in itertools.pairwise(widths)
        ]
        x = random.normal(size=shape).astype("f4")
        exact = theirs(arrays, x, torch.float64)
        errors = [
            apart(each, exact)
            for each in (ours(arrays, x), theirs(arrays, x, torch.float32))
        ]
        ratios.append(errors[0] / errors[1])
    assert np.exp(np.mean(np.log(ratios))) < 1.3, ratios
