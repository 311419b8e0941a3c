"""Learning-rate schedules against PyTorch's and against their formulas."""

import numpy as np
import pytest

from burnish import optim


def rates(schedule, n):
    return [schedule.step() for _ in range(n)]


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (optim.Constant(0.1), [0.1] * 6),
        (optim.Linear(1.0, 0.0, steps=4), [1, 0.75, 0.5, 0.25, 0, 0]),
        (optim.Linear(0.0, 1.0, steps=2), [0, 0.5, 1, 1, 1, 1]),
        (
            optim.Cosine(2.0, steps=4, final=1.0),
            [2, 1.5 + 8**-0.5, 1.5, 1.5 - 8**-0.5, 1],
        ),
        (optim.Exponential(1.0, 0.5), [1, 0.5, 0.25, 0.125]),
        (optim.Steps(1.0, every=2, gamma=0.5), [1, 1, 0.5, 0.5, 0.25]),
        (optim.Noam(1.0, warmup=2, model_size=4), [2**-2.5, 2**-1.5, 0.5 * 3**-0.5]),
    ],
)
def test_rates(schedule, expected):
    np.testing.assert_allclose(rates(schedule, len(expected)), expected, atol=1e-12)


def test_a_schedule_goes_on_where_it_was():
    one = optim.Cosine(1.0, steps=10)
    rates(one, 4)
    two = optim.Cosine(1.0, steps=10).load_state_dict(one.state_dict())
    assert rates(two, 3) == rates(one, 3)


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("schedule", "name", "options"),
    [
        (optim.Cosine(0.5, steps=20, final=0.1), "CosineAnnealingLR", (20, 0.1)),
        (optim.Linear(0.5, 0.05, steps=20), "LinearLR", (1.0, 0.1, 20)),
        (optim.Exponential(0.5, 0.9), "ExponentialLR", (0.9,)),
        (optim.Steps(0.5, every=7), "StepLR", (7,)),
    ],
)
def test_pytorch_has_the_same_rates(schedule, name, options, torch):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
    theirs = getattr(torch.optim.lr_scheduler, name)(optimizer, *options)
    for _ in range(20):
        assert schedule.step() == pytest.approx(theirs.get_last_lr()[0], rel=1e-9)
        optimizer.step()
        theirs.step()
