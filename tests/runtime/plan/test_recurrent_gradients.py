"""Gradients of recurrent layers by as many examples as go through time together."""

import functools

import numpy as np
import pytest

import burnish
from burnish import ops
from tests.runtime.plan.gradients import exact, normal

pytestmark = pytest.mark.usefixtures("canaries")

CELLS = {
    "lstm": (ops.lstm, 4),
    "gru": (functools.partial(ops.gru, linear_before_reset=True), 3),
}
STEPS, INPUTS = 3, 5


@pytest.fixture(autouse=True)
def one_thread():
    """All examples in one share."""
    before = burnish.num_threads()
    burnish.set_num_threads(1)
    yield
    burnish.set_num_threads(before)


@pytest.mark.parametrize("examples", [*range(1, 10), 13, 35])
@pytest.mark.parametrize("hidden", [7, 33])
@pytest.mark.parametrize("name", CELLS)
def test_every_number_of_examples_has_the_gradients_in_double_precision(
    name, hidden, examples
):
    layer, gates = CELLS[name]
    random = np.random.default_rng(examples)
    report = exact(
        lambda x, w, r, b: layer(x, w, r, b)[0],
        normal(random, STEPS, examples, INPUTS),
        normal(random, 1, gates * hidden, INPUTS),
        normal(random, 1, gates * hidden, hidden) / hidden**0.5,
        normal(random, 1, 2 * gates * hidden),
    )
    assert "nothing eagerly" in report, report
