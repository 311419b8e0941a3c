"""burnish.compile of functions that choose what to do by computed values."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops
from tests.runtime.plan.checks import records, same

RANDOM = np.random.default_rng(0)


def tensor(*shape):
    return Tensor(RANDOM.standard_normal(shape).astype(np.float32))


class Gate(nn.Module):
    """(..., 5) -> (..., 5)"""

    def __init__(self):
        self.first, self.second = nn.Linear(5, 5), nn.Linear(5, 5)

    def forward(self, x):
        y = ops.relu(self.first(x))
        if x.mean() > 0:
            y = self.second(ops.tanh(y + x))
        return y


def nested(x):
    y = ops.exp(x)
    if x.sum() > 0:
        y = y * 2
        if x.max() > 1:
            return ops.tanh(y), x
        y = y - x
    elif x.min() < -1:
        return ops.relu(y), y
    return y / (1 + y), y


def grows(x):
    """As long as the sum is small."""
    rounds = 0
    while ops.abs(x).sum() < 50:
        x = x * 1.5 + 0.1
        rounds += 1
    return ops.exp(-x), x * rounds


def by_length(x):
    """A loop whose length is a value."""
    length = (x > 0).sum().long()
    total = ops.tanh(x)
    for i in range(length):
        total = total + ops.relu(x - i)
    return total


def repeated(x):
    """Numbers of all kinds, `and`, and a value from before a question."""
    before = ops.exp(x)
    count = int((x > 0.5).sum())
    if x[0, 0] > 0 and x[0, 1] > 0:
        return before * count
    return before.reshape(-1)[: count + 1]


def early(x):
    """An argument is asked, and returned as it is."""
    if x[0, 0] > 0:
        return x
    return {"y": [ops.exp(x), x], "n": 3}


FUNCTIONS = (nested, grows, by_length, repeated, early)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_values_are_those_of_the_plain_call(function):
    fast = burnish.compile(function)
    inputs = [tensor(3, 5) * scale for scale in (0.3, 1, 2) for _ in range(8)]
    for x in inputs + inputs:
        same(fast(x), function(x))
    assert records(fast)
    assert "eagerly" not in fast.explain()


@pytest.mark.parametrize(
    "part",
    [
        lambda x, i: x[i[0] :],
        lambda x, i: x[:, 1 : i[0] : 2],
        lambda x, i: ops.getitem(x, index=slice(i[0])),
        lambda x, i: x.set_item(slice(i[0], None), 0),
    ],
    ids=["x[i:]", "x[:, 1:i:2]", "getitem", "set_item"],
)
def test_the_end_of_a_slice_is_a_value(part):
    fast, x = burnish.compile(part), tensor(4, 5)
    for i in (2, 0, 3, 2):
        same(fast(x, Tensor([i])), part(x, [i]))
    leaf = x.require_grad()  # the thread's calls are no longer written down
    same(leaf.grad((leaf * 3).sum().backward()), Tensor.ones(4, 5) * 3)


def test_both_branches_of_a_module_in_turn():
    model, x = Gate(), abs(tensor(2, 5))
    fast = burnish.compile(model)
    for each in (x, -x, x, -x, x):
        same(fast(each), model(each))
    assert "3 plans, 2 paths" in fast.explain()
    assert "in Gate.forward: the value of a tensor () decides by bool()" in (
        fast.explain()
    )
    assert "linear" in fast.plan(x)
    model.second.weight.assign(model.second.weight.data * 2)
    for each in (x, -x):
        same(fast(each), model(each))
    model.second = nn.Linear(5, 5)
    assert "linear" in fast.plan(x)
    for each in (x, -x, x):
        same(fast(each), model(each))


class Counted:
    """A function that counts its calls, which no capture sees."""

    def __init__(self, function):
        self.calls, self._function = np.zeros(1, int), function

    def __call__(self, *args):
        self.calls[0] += 1
        return self._function(*args)


def test_a_planned_branch_does_not_call_the_function():
    x = abs(tensor(3, 5))
    function = Counted(nested)
    fast = burnish.compile(function)
    fast(x), fast(-x)
    before = function.calls[0]
    for each in (x, -x, x):
        same(fast(each), nested(each))
    assert function.calls[0] == before


def test_numbers_that_are_seldom_the_same_run_eagerly():
    def scaled(x):
        return ops.exp(x / float(ops.abs(x).max()))

    function = Counted(scaled)
    fast = burnish.compile(function)
    for _ in range(20):
        x = tensor(3, 5)
        same(fast(x), scaled(x))
    assert "seldom the same" in fast.explain()
    before = function.calls[0]
    same(fast(x), scaled(x))
    assert function.calls[0] == before + 1


def test_zeros_of_both_signs_and_nan_are_other_answers():
    def signed(x):
        return x + np.copysign(1.0, float(x.sum()))

    fast = burnish.compile(signed)
    for number in (0.0, -0.0, 0.0, np.nan, np.nan):
        x = Tensor(np.float32([number]))
        np.testing.assert_array_equal(fast(x).data, signed(x).data)


def test_a_loop_without_a_bound_runs_eagerly():
    def long(x):
        while x.sum() < 1000:
            x = x + 1
        return x

    fast, x = burnish.compile(long), Tensor(np.zeros(1, np.float32))
    assert fast(x).data == [1000]
    assert "more than 64 times" in fast.explain()
    assert fast(x + 990).data == [1000]


def test_arrays_are_refused_behind_a_value():
    def function(x):
        y = ops.exp(x)
        return Tensor(y.numpy() * 2) if x.sum() > 0 else y * 3

    fast, x = burnish.compile(function), abs(tensor(5))
    for each in (-x, x, -x, x):
        same(fast(each), function(each))
    assert "where it is True, the call runs eagerly: capture: " in fast.explain()
    assert records(fast)
    assert "function runs eagerly: capture: " in fast.plan(x)
    assert "exp" in fast.plan(-x)


def test_an_exception_in_one_branch_leaves_state_as_it_was():
    class Counts(nn.Module):
        def __init__(self):
            self.count = nn.Buffer(np.zeros(1, np.float32))

        def forward(self, x):
            self.count.assign(self.count + 1)
            if x.sum() < 0:
                raise ValueError("a sum below 0")
            return x * self.count

    plain, model, x = Counts(), Counts(), abs(tensor(5))
    fast = burnish.compile(model)
    for _ in range(3):
        same(fast(x), plain(x))
        with pytest.raises(ValueError, match="a sum below 0"):
            fast(-x)
        assert model.count.data == plain.count.data


def test_buffers_and_draws_move_as_in_the_plain_call():
    class Noisy(nn.Module):
        def __init__(self):
            self.mean = nn.Buffer(np.zeros(4, np.float32))

        def forward(self, x):
            noise = Tensor.rand(4)
            self.mean.assign(self.mean * 0.5 + x)
            if x.sum() > 0:
                self.mean.assign(self.mean + noise)
                if self.mean.max() > 1:
                    return Tensor.rand(4) + self.mean
            return self.mean * noise

    plain, model = Noisy(), Noisy()
    fast, inputs = burnish.compile(model), [tensor(4) for _ in range(12)]
    made = []
    for called in (plain, fast):
        burnish.seed(3)
        made.append([called(x) for x in inputs] + [Tensor.rand(4)])
    same(made[1], made[0])
    same(model.mean.data, plain.mean.data)


@pytest.mark.parametrize("asks", [True, False])
def test_a_listing_of_steps_leaves_buffers_and_draws_as_they_were(asks):
    class Noisy(nn.Module):
        def __init__(self):
            self.count = nn.Buffer(np.zeros(4, np.float32))

        def forward(self, x):
            self.count.assign(self.count + 1)
            if asks and x.sum() < 0:
                return x
            return x * Tensor.rand(4) + self.count

    plain, model, x = Noisy(), Noisy(), abs(tensor(4))
    fast, made = burnish.compile(model), []
    for called in (plain, fast):
        burnish.seed(3)
        made.append([])
        for _ in range(3):
            made[-1].append(called(x))
            if called is fast:
                assert "mul + add" in fast.plan(x)
    same(made[1], made[0])
    same(model.count.data, plain.count.data)


def test_threads():
    fast, inputs = burnish.compile(nested), [tensor(3, 5) for _ in range(40)]
    wanted = [nested(x) for x in inputs]
    problems = []

    def work(first):
        try:
            for i in [*range(first, 40), *range(first)] * 3:
                same(fast(inputs[i]), wanted[i])
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in (0, 13, 26)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_a_whole_number_beside_a_computed_value():
    def function(x, n):
        y = ops.exp(x) if n > 2 else x
        return y * 2 if y.sum() > 0 else -y

    fast, x = burnish.compile(function), abs(tensor(5))
    for n in (1, 3, 1, 3):
        for each in (x, -x):
            same(fast(each, Tensor(n)), function(each, Tensor(n)))
    assert "eagerly" not in fast.explain()


class Counts(nn.Module):
    """What it gives depends on the number of its calls."""

    def __init__(self):
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.calls


class CountsBefore(Counts):
    def forward(self, x):
        y = super().forward(x)
        return ops.exp(y) if x.sum() > 0 else y


class CountsBehind(Counts):
    def forward(self, x):
        return super().forward(x) if x.sum() > 0 else -x


@pytest.mark.parametrize("kind", [Counts, CountsBefore, CountsBehind])
def test_a_capture_that_is_refused_leaves_numbers_as_they_were(kind):
    plain, model, x = kind(), kind(), abs(tensor(3))
    fast = burnish.compile(model)
    for each in (-x, x, -x, x, x):
        same(fast(each), plain(each))
        assert model.calls == plain.calls


def asks_in_a_try(x):
    try:
        if x.sum() > 0:
            raise ValueError
        return x * 2
    except Exception:
        return x * 3


def reads_in_a_try(x):
    y = ops.exp(x)
    if x.sum() > 0:
        try:
            return y * float(y.numpy().max())
        except Exception:
            return y
    return y * 5


def raises_another(x):
    try:
        return x * float(x.numpy().max())
    except Exception as error:
        raise TypeError("expected values") from error


@pytest.mark.parametrize("function", [asks_in_a_try, reads_in_a_try, raises_another])
def test_functions_that_catch_exceptions_do_not_catch_refusals(function):
    fast, x = burnish.compile(function), abs(tensor(3))
    for each in (x, -x, x, -x):
        same(fast(each), function(each))
