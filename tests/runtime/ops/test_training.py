"""Steps of optimizers against the formulas of the specification."""

import numpy as np
import pytest

from burnish import ops
from burnish.errors import InputError
from tests.harness.operators import case

RATE = np.array(0.1)
OPTIONS = {"alpha": 0.9, "beta": 0.8}


def adagrad(x, g, h, rate, count):
    g = g + 0.01 * x
    h = h + g * g
    x = x - rate / (1 + count * 0.5) * g / (np.sqrt(h) + 1e-6)
    return x.astype(g.dtype), h


def adam(x, g, v, h, rate, count):
    v, h = 0.9 * v + (1 - 0.9) * g, 0.8 * h + (1 - 0.8) * g * g
    if count > 0:
        rate = rate * np.sqrt(1 - 0.8**count) / (1 - 0.9**count)
    x = (x - rate.astype(x.dtype) * v / (np.sqrt(h) + 1e-6)) * (1 - 0.1)
    return x.astype(g.dtype), v, h


def momentum(x, g, v, rate, count):
    v = 0.9 * v + (0.8 if count > 0 else 1.0) * g
    return x - rate * v, v


def nesterov(x, g, v, rate, count):
    v = 0.9 * v + (0.8 if count > 0 else 1.0) * g
    return x - rate * (g + 0.9 * v), v


THREE = ((3,), (3,), (3,))
LOW = {"low": 0.5}

CASES = [
    case(
        ops.adagrad_step,
        *(*THREE, RATE, np.array(2)),
        decay_factor=0.5,
        norm_coefficient=0.01,
        expect=adagrad,
        **LOW,
    ),
    *(
        case(
            ops.adam_step,
            *(*THREE, (3,), RATE, np.array(count)),
            norm_coefficient_post=0.1,
            expect=adam,
            **LOW,
            **OPTIONS,
        )
        for count in (0, 3)
    ),
    *(
        case(
            ops.momentum_step,
            *(*THREE, RATE, np.array(count)),
            mode=mode,
            expect=expect,
            **OPTIONS,
        )
        for mode, expect in (("standard", momentum), ("nesterov", nesterov))
        for count in (0, 1)
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


def test_an_unknown_mode_is_refused():
    x = np.ones(2)
    with pytest.raises(InputError, match="'standard' or 'nesterov'"):
        ops.momentum_step(x, x, x, 0.1, 0, mode="heavy", **OPTIONS)
