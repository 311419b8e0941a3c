"""The plain training loop."""

import numpy as np
import pytest

from burnish import Tensor, data, nn, ops, optim
from burnish.errors import InputError
from burnish.training import accuracy, train


def square(output, target):
    error = output - target
    return ops.sum_to(error * error, shape=())


RNG = np.random.default_rng(0)
X = RNG.normal(size=(64, 3)).astype(np.float32)
Y = X @ np.float32([[1, 2], [3, 4], [5, 6]]) + 1


def test_a_line_is_found():
    model = nn.Linear(3, 2)
    batches = data.batches((X, Y), 16, shuffle=0)
    losses = []
    for _ in range(60):
        for step in train(model, square, batches, optim.Adam(), 0.05):
            losses.append(step.loss)
    np.testing.assert_allclose(model.weight.numpy(), [[1, 3, 5], [2, 4, 6]], atol=0.05)
    assert losses[-1] < 1e-2 * losses[0]
    assert model.training


def test_a_step_says_what_it_did():
    model, schedule = nn.Linear(3, 2), optim.Linear(1e-2, 0.0, steps=2)
    steps = list(train(model, square, data.batches((X, Y), 32), optim.SGD(), schedule))
    assert [step.index for step in steps] == [0, 1]
    assert [step.learning_rate for step in steps] == [1e-2, 5e-3]
    assert steps[0].output.shape == (32, 2)
    assert len(steps[0].batch) == 2
    assert isinstance(steps[0].loss, float)


def test_the_loop_may_stop_and_continue():
    model = nn.Linear(3, 2)
    before = model.weight.numpy().copy()
    for step in train(model, square, data.batches((X, Y), 8), optim.SGD(), 1e-3):
        if step.index == 2:
            break
    assert (model.weight.numpy() != before).any()
    assert not model.valid()(Tensor(X)).requires_grad


def test_accuracy_counts_rows():
    output = Tensor([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    assert accuracy(output, Tensor([1, 0, 0, 0])) == 0.75
    assert accuracy(output.numpy(), np.array([1, 0, 1, 0])) == 1
    with pytest.raises(InputError, match=r"for target \(3,\), got \(4, 2\)"):
        accuracy(output, np.zeros(3))
