"""Learning-rate schedules against PyTorch's and against their formulas."""

import numpy as np
import pytest

from burnish import nn, optim
from burnish.errors import InputError, RecordError
from burnish.nn import ParamGroup


def rates(schedule, n):
    return [schedule.step() for _ in range(n)]


FORMULAS = {
    "constant": (optim.Constant(0.1), [0.1] * 6),
    "linear": (optim.Linear(1.0, 0.0, steps=4), [1, 0.75, 0.5, 0.25, 0, 0]),
    "linear up": (optim.Linear(0.0, 1.0, steps=2), [0, 0.5, 1, 1, 1, 1]),
    "cosine": (
        optim.Cosine(2.0, steps=4, final=1.0),
        [2, 1.5 + 8**-0.5, 1.5, 1.5 - 8**-0.5, 1, 1],
    ),
    "restarts": (optim.CosineRestarts(2.0, steps=2), [2, 1, 2, 1, 2]),
    "longer restarts": (
        optim.CosineRestarts(2.0, steps=1, factor=2),
        [2, 2, 1, 2, 1 + 2**-0.5, 1, 1 - 2**-0.5, 2],
    ),
    "exponential": (optim.Exponential(1.0, 0.5), [1, 0.5, 0.25, 0.125]),
    "steps": (optim.Steps(1.0, every=2, gamma=0.5), [1, 1, 0.5, 0.5, 0.25]),
    "multi step": (optim.MultiStep(1.0, (3, 1), 0.5), [1, 0.5, 0.5, 0.25, 0.25]),
    "polynomial": (
        optim.Polynomial(1.0, 0.0, steps=4, power=2.0),
        [1, 9 / 16, 4 / 16, 1 / 16, 0, 0],
    ),
    "noam": (
        optim.Noam(1.0, warmup=2, model_size=4),
        [2**-2.5, 2**-1.5, 0.5 * 3**-0.5],
    ),
    "factor": (optim.Factor(2.0, lambda step: 1 / (1 + step)), [2, 1, 2 / 3]),
    "cyclic": (optim.Cyclic(0.0, 1.0, 2, 1), [0, 0.5, 1, 0, 0.5, 1, 0]),
    "one cycle": (
        optim.OneCycle(
            1.0,
            steps=7,
            pct_start=4 / 7,
            div_factor=4.0,
            final_div_factor=1.0,
            anneal_strategy="linear",
        ),
        [0.25, 0.5, 0.75, 1, 0.75, 0.5, 0.25, 0.25],
    ),
    "product": (
        optim.Composed(optim.Constant(2.0), optim.Linear(1.0, 0.0, 2)),
        [2, 1, 0, 0],
    ),
    "sum": (
        optim.Composed(optim.Constant(2.0), optim.Linear(1.0, 0.0, 2), reduction="sum"),
        [3, 2.5, 2, 2],
    ),
    "average": (
        optim.Composed(optim.Constant(2.0), optim.Linear(1.0, 0.0, 2), reduction="avg"),
        [1.5, 1.25, 1, 1],
    ),
    "sequential": (
        optim.Sequential([optim.Constant(3.0), optim.Linear(1.0, 0.0, 2)], [2]),
        [3, 3, 1, 0.5, 0, 0],
    ),
    "warmup": (optim.Warmup(optim.Linear(1.0, 0.0, 2), 2), [0, 0.5, 1, 0.5, 0]),
    "no warmup": (optim.Warmup(optim.Constant(1.0), 0), [1, 1]),
    "warmup in a product": (
        optim.Composed(
            optim.Warmup(optim.Constant(1.0), 2, start=0.5), optim.Constant(4.0)
        ),
        [2, 3, 4, 4],
    ),
}


@pytest.mark.parametrize(("schedule", "expected"), FORMULAS.values(), ids=FORMULAS)
def test_rates(schedule, expected):
    assert schedule.at(0) == pytest.approx(expected[0])
    np.testing.assert_allclose(rates(schedule, len(expected)), expected, atol=1e-12)


@pytest.mark.parametrize(("schedule", "_"), FORMULAS.values(), ids=FORMULAS)
def test_a_record_continues_where_it_was(schedule, _, tmp_path):
    rates(schedule, 4)
    schedule.save_file(tmp_path / "schedule.safetensors")
    place, ahead = schedule.count, rates(schedule, 3)
    schedule.load_file(tmp_path / "schedule.safetensors")
    assert schedule.count == place
    assert rates(schedule, 3) == ahead


CYCLE = {"max_lr": 0.5, "total_steps": 60, "cycle_momentum": False}
CYCLIC = {"base_lr": 0.1, "max_lr": 0.5, "cycle_momentum": False}
PEERS = {
    "cosine": (
        optim.Cosine(0.5, 60, 0.1),
        "CosineAnnealingLR",
        {"T_max": 60, "eta_min": 0.1},
    ),
    "linear": (
        optim.Linear(0.5, 0.05, 20),
        "LinearLR",
        {"start_factor": 1.0, "end_factor": 0.1, "total_iters": 20},
    ),
    "constant": (
        optim.Sequential([optim.Constant(0.05), optim.Constant(0.5)], [7]),
        "ConstantLR",
        {"factor": 0.1, "total_iters": 7},
    ),
    "exponential": (optim.Exponential(0.5, 0.9), "ExponentialLR", {"gamma": 0.9}),
    "steps": (optim.Steps(0.5, 7), "StepLR", {"step_size": 7}),
    "multi step": (
        optim.MultiStep(0.5, [5, 11, 40], 0.3),
        "MultiStepLR",
        {"milestones": [5, 11, 40], "gamma": 0.3},
    ),
    "polynomial": (
        optim.Polynomial(0.5, 0.0, 50, 1.7),
        "PolynomialLR",
        {"total_iters": 50, "power": 1.7},
    ),
    "factor": (
        optim.Factor(0.5, lambda n: 0.95**n + 0.01),
        "LambdaLR",
        {"lr_lambda": lambda n: 0.95**n + 0.01},
    ),
    "restarts": (
        optim.CosineRestarts(0.5, 7, 2, 0.01),
        "CosineAnnealingWarmRestarts",
        {"T_0": 7, "T_mult": 2, "eta_min": 0.01},
    ),
    "equal restarts": (
        optim.CosineRestarts(0.5, 9),
        "CosineAnnealingWarmRestarts",
        {"T_0": 9},
    ),
    "one cycle": (optim.OneCycle(0.5, 60), "OneCycleLR", CYCLE),
    "three phases": (
        optim.OneCycle(0.5, 60, 0.2, "linear", 10.0, 50.0, three_phase=True),
        "OneCycleLR",
        CYCLE
        | {"pct_start": 0.2, "anneal_strategy": "linear", "div_factor": 10.0}
        | {"final_div_factor": 50.0, "three_phase": True},
    ),
    "cyclic": (optim.Cyclic(0.1, 0.5, 8), "CyclicLR", CYCLIC | {"step_size_up": 8}),
    "triangular2": (
        optim.Cyclic(0.1, 0.5, 5, 9, "triangular2"),
        "CyclicLR",
        CYCLIC | {"step_size_up": 5, "step_size_down": 9, "mode": "triangular2"},
    ),
    "exp_range": (
        optim.Cyclic(0.1, 0.5, 6, mode="exp_range", gamma=0.97),
        "CyclicLR",
        CYCLIC | {"step_size_up": 6, "mode": "exp_range", "gamma": 0.97},
    ),
}


@pytest.mark.oracle
@pytest.mark.parametrize(("schedule", "name", "options"), PEERS.values(), ids=PEERS)
def test_pytorch_has_the_same_rates(schedule, name, options, torch):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
    theirs = getattr(torch.optim.lr_scheduler, name)(optimizer, **options)
    for step in range(60):
        expected = theirs.get_last_lr()[0]
        assert schedule.at(step) == pytest.approx(expected, rel=1e-9, abs=1e-12)
        optimizer.step()
        if step < 59:  # one cycle is over then
            theirs.step()


@pytest.mark.oracle
def test_pytorch_puts_schedules_one_after_another_alike(torch):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
    each = torch.optim.lr_scheduler
    first = each.LinearLR(optimizer, 0.1, 1.0, 10)
    theirs = each.SequentialLR(
        optimizer, [first, each.ExponentialLR(optimizer, 0.9)], [10]
    )
    ours = optim.Sequential(
        [optim.Linear(0.05, 0.5, 10), optim.Exponential(0.5, 0.9)], [10]
    )
    for _ in range(50):
        assert ours.step() == pytest.approx(theirs.get_last_lr()[0])
        optimizer.step()
        theirs.step()


def test_groups_have_rates_of_their_own():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    last, biases = ParamGroup.from_paths("1"), ParamGroup.from_regex(r"bias$")
    schedule = (
        optim.ModuleSchedule(optim.Linear(1.0, 0.0, 2))
        .with_group(last, optim.Constant(10.0))
        .with_group(biases, optim.Exponential(100.0, 0.1))
    )
    before = model.state_dict()
    ones = {path: np.ones_like(array) for path, array in before.items()}
    for expected in ((1, 10, 100), (0.5, 10, 10)):
        before, rate = model.state_dict(), schedule.step()
        assert float(rate) == expected[0]
        optim.SGD().step(rate, model, optim.GradientsParams(ones))
        moved = {path: (before[path] - new) for path, new in model.state_dict().items()}
        wanted = (expected[0], expected[2], expected[1], expected[2])
        for got, want in zip(moved.values(), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5)
    again = optim.ModuleSchedule(optim.Linear(1.0, 0.0, 2))
    assert again.load_state_dict(schedule.state_dict()).step() == 0


def test_users_write_a_schedule_in_one_method():
    class Halves(optim.Schedule):
        def at(self, step):
            return self.rate / (1 << step)

    assert rates(Halves(1.0), 3) == [1, 0.5, 0.25]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: optim.Linear(1.0, 0.0, 0), "Linear steps: expected 1 or more, got 0"),
        (lambda: optim.Cosine(1.0, 0), "Cosine steps"),
        (lambda: optim.Polynomial(1.0, 0.0, 0), "Polynomial steps"),
        (lambda: optim.Steps(1.0, 0), "Steps every"),
        (lambda: optim.CosineRestarts(1.0, 5, 0), "CosineRestarts factor"),
        (lambda: optim.OneCycle(1.0, 5, 2.0), r"share in \[0, 1\], got 2.0"),
        (lambda: optim.OneCycle(1.0, 5, anneal_strategy="up"), "'cos' or 'linear'"),
        (lambda: optim.Cyclic(0.1, 1.0, mode="wave"), "got 'wave'"),
        (lambda: optim.Composed(), "got 0 and 'prod'"),
        (
            lambda: optim.Composed(optim.Constant(1.0), reduction="max"),
            "prod, sum, avg, got 1 and 'max'",
        ),
        (lambda: optim.Sequential([optim.Constant(1.0)], [3]), "one fewer"),
        (lambda: optim.Warmup(optim.Constant(1.0), -1), "an integer of 0 or more"),
    ],
)
def test_impossible_options_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_a_damaged_record_is_refused():
    with pytest.raises(RecordError, match=r"expected 'count' alone, got \['step'\]"):
        optim.Constant(1.0).load_state_dict({"step": np.ones(())})
