"""burnish.compile: what it keeps of a function, and when it plans anew."""

from __future__ import annotations

import itertools
import re
from collections import deque

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops
from burnish.errors import InputError
from burnish.kernels.direct import address
from burnish.plan import plan as plans
from tests.runtime.plan.checks import check, records, same

RANDOM = np.random.default_rng(0)


def tensor(*shape):
    return Tensor(RANDOM.standard_normal(shape).astype(np.float32))


class Net(nn.Module):
    def __init__(self):
        self.conv = nn.Conv2d(3, 20, 3, padding=1)
        self.norm = nn.BatchNorm2d(20)
        self.fc1 = nn.Linear(20, 33)
        self.fc2 = nn.Linear(33, 5)

    def forward(self, x):
        x = ops.relu(self.norm(self.conv(x))).mean(axis=(2, 3))
        return self.fc2(ops.gelu(self.fc1(x)))


def test_a_module():
    fast = check(Net(), tensor(2, 3, 9, 11))
    assert records(fast) == 4  # convolution, mean, two products
    assert "eagerly" not in fast.explain()


class Accepting(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(3, 2)

    @nn.accepts(x="float32[_, 3]", words="object[_]")
    def forward(self, x, words=None):
        y = self.fc(x)
        if words is None:
            return y
        keys, values = ["red", "green", "red"], [1.0, 2.0, 3.0]
        return y * ops.label_encoder(words, keys, values, default=-1.0).reshape(-1, 1)


def test_arrays_that_a_module_accepts_are_planned_as_tensors():
    x = RANDOM.standard_normal((4, 3)).astype(np.float32)
    words = np.array(["red", "green", "greenish", ""], object)
    model = Accepting()
    for given in ((x,), (x, words)):
        fast = burnish.compile(model)
        for _ in range(2):
            same(fast(*given), model(*given))
        same(fast(x=given[0], words=words), model(x, words))
        assert records(fast)
        assert "runs eagerly" not in fast.plan(*given)
    with pytest.raises(InputError, match="expected float32"):
        burnish.compile(model)(x[:, :2])


def test_arrays_that_a_module_does_not_accept_stay_arrays():
    class Partly(nn.Module):
        @nn.accepts(x="float32[...]")
        def forward(self, x, by, to=None):
            return x * float(by[0]), type(by), type(to)

    x, by = np.ones((2, 3), np.float32), np.full(1, 2, np.float32)
    model = Partly()
    fast = burnish.compile(model)
    for given in (x, Tensor(x)):
        (y, *kinds), (want, *others) = fast(given, by, to=by), model(given, by, to=by)
        same(y, want)
        assert kinds == others == [np.ndarray, np.ndarray]


def test_calls_without_a_record_are_those_of_the_function():
    def upper(words):
        next(calls)
        return ops.string_normalizer(words, case_change_action="UPPER")

    calls = itertools.count()
    fast, words = burnish.compile(upper), Tensor(np.array(["a", "b"], object))
    for _ in range(2):
        assert fast(words).data.tolist() == ["A", "B"]
    assert next(calls) == 3
    assert "string_normalizer: there is no kernel for it" in fast.explain()


class Logs(nn.Module):
    """Changes containers of its own in each call, one of which is a cache."""

    def __init__(self, change):
        self.linear, self.change = nn.Linear(4, 3), change
        self.items = {"log": [0], "seen": {1}, "last": deque([1, 2], 2), "cache": {}}

    def forward(self, x):
        self.change(self.items, x)
        return self.linear(x)


def constant(items, x):
    if x.shape not in items["cache"]:
        items["cache"][x.shape] = Tensor(np.ones(3, np.float32))


CHANGES = {
    "append": lambda items, x: items["log"].append(1),
    "pop and append": lambda items, x: items["log"].append(items["log"].pop() + 1),
    "a tensor": lambda items, x: items["log"].append(x * 2),
    "add": lambda items, x: items["seen"].add(len(items["seen"]) + 1),
    "a deque": lambda items, x: items["last"].append(items["last"][-1] + 1),
    "a new key": lambda items, x: items.setdefault("new", []).append(1),
    "a key less": lambda items, x: items.pop(min(items), None),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_containers_change_in_each_call(change):
    model, other = Logs(change), Logs(change)
    other.linear = model.linear
    fast, x = burnish.compile(model), tensor(2, 4)
    for _ in range(3):
        same(fast(x), other(x))
        assert str(model.items) == str(other.items)
    assert "changes the items of 'items' of Logs" in fast.explain()


def test_containers_of_one_name_in_two_functions_change_in_each_call():
    def counting(function):
        log = []

        def counted(x):
            log.append(1)
            return function(x)

        return counted, log

    inner, first = counting(ops.relu)
    outer, second = counting(lambda x: inner(x) * 2)
    fast, x = burnish.compile(outer), tensor(2, 4)
    for times in (1, 2, 3):
        same(fast(x), ops.relu(x) * 2)
        assert (len(first), len(second)) == (times, times)


@pytest.mark.parametrize("by_number", [False, True])
def test_containers_that_are_arguments_change_in_each_call(by_number):
    def update(x, n, cache):
        cache["k"] = cache["k"] + (x if not by_number or n > 0 else -x)
        return x * 2

    fast, x, n = burnish.compile(update), tensor(2, 4), Tensor(np.array(1))
    cache = {"k": x}
    for times in (2, 3, 4):
        same(fast(x, n, cache), x * 2)
        same(cache["k"], x * times)
    assert "changes the items of 'cache'" in fast.explain()


def test_a_cache_of_constants_is_filled_by_a_capture():
    fast, x = burnish.compile(Logs(constant)), tensor(2, 4)
    assert "linear" in fast.plan(x)


def test_a_decorated_function():
    weight = tensor(4, 7)

    @burnish.compile
    def scores(x, *, factor=2.0):
        """Its own words."""
        return {"y": [ops.tanh(x @ weight.T) * factor, x]}

    x = tensor(3, 7)
    same(scores(x, factor=3.0), {"y": [ops.tanh(x @ weight.T) * 3.0, x]})
    same(scores(x), {"y": [ops.tanh(x @ weight.T) * 2.0, x]})
    assert scores.__name__ == "scores"
    assert scores.__doc__ == "Its own words."


def test_other_shapes_get_plans_of_their_own():
    model = Net()
    fast = burnish.compile(model)
    for batch in (1, 2, 1, 3):
        x = tensor(batch, 3, 5, 6)
        same(fast(x), model(x))
    assert fast.explain().count("records") == 3


def test_plans_that_were_not_used_longest_go():
    fast = burnish.compile(ops.exp)
    for size in range(1, 40):
        fast(tensor(size))
    assert len(fast._plans) == 32


def test_assigned_parameters_are_taken_up():
    model = Net()
    x = tensor(2, 3, 5, 5)
    fast = burnish.compile(model)
    before = fast(x).numpy()
    model.fc1.weight.assign(model.fc1.weight.data * 2)
    model.norm.running_var.assign(model.norm.running_var.data * 3)
    same(fast(x), model(x))
    assert abs(fast(x).numpy() - before).max() > 1e-4
    assert len(fast._plans) == 1


@pytest.mark.parametrize("when", ["made", "looked at"])
def test_parameters_that_another_thread_assigns_meanwhile(when, monkeypatch):
    """The next call sees the new values, however late the plan looked at the old."""
    layer, x = nn.Linear(4, 4), tensor(2, 4)
    fast = burnish.compile(layer)
    fast(x)
    plan = fast.planned(x)

    numbers = itertools.count()

    def assign():
        layer.weight.assign(np.full((4, 4), next(numbers), np.float32))

    def held(room, array, made=plans.Room.held):
        array = made(room, array)
        assign()
        return array

    def looks(self, made=plans.Plan.looks.fget):
        assign()
        plan([x])  # as another thread does
        return made(self)

    assign()
    if when == "made":
        monkeypatch.setattr(plans.Room, "held", held)
    else:
        monkeypatch.setattr(plans.Plan, "looks", property(looks))
    fast(x)
    monkeypatch.undo()
    same(fast(x), layer(x))
    same(fast(x), layer(x))


def test_lazy_parameters_are_packed_once():
    layer, x = nn.Linear(4, 4), tensor(2, 4)
    fast = burnish.compile(layer)
    fast(x)
    layer.weight.lend(lambda shape, dtype, device: np.ones(shape, dtype))
    same(fast(x), layer(x))
    packed = fast.planned(x).constants
    same(fast(x), layer(x))
    assert fast.planned(x).constants is packed


def test_parts_of_a_parameter_are_made_once():
    both, bias = nn.Param(tensor(10, 7).data), nn.Param(tensor(10).data)

    class Parts(nn.Module):
        def __init__(self):
            self.both, self.bias = both, bias

        def forward(self, x):
            weights = ops.split(self.both, num=2, axis=0)
            biases = ops.split(self.bias, num=2, axis=0)
            pairs = zip(weights, biases, strict=True)
            return [ops.linear(x, w, b) for w, b in pairs]

    x = tensor(3, 7)
    fast = check(Parts(), x)
    assert records(fast) == 2
    assert "eagerly" not in fast.plan(x)
    both.assign(tensor(10, 7).data)
    same(fast(x), fast._function(x))


def test_parameters_that_are_cast_are_made_once():
    class Scaled(nn.Module):
        def __init__(self):
            self.scale = nn.Param(np.array([1, -2, 300], np.int16))

        def forward(self, x):
            return x * self.scale.to(np.float32)

    assert records(check(Scaled(), tensor(4, 3))) == 1


def test_a_module_that_changes_is_planned_anew():
    model = Net()
    x = tensor(2, 3, 5, 5)
    fast = burnish.compile(model)
    fast(x)
    model.fc2 = nn.Linear(33, 7)
    same(fast(x), model(x))
    assert fast(x).shape == (2, 7)


def test_gradients_are_recorded_by_the_plain_call():
    model = Net().to("cpu:autodiff")
    fast = burnish.compile(model)
    x = tensor(2, 3, 5, 5)
    gradients = fast(x.to("cpu:autodiff")).sum().backward()
    assert model.fc1.weight.grad(gradients) is not None
    assert "for inference" in fast.explain()
    model.to("cpu")
    same(fast(x), model(x))
    assert records(fast)


def test_what_has_no_kernel_runs_between_segments():
    def function(x):
        y = ops.relu(x * 2 + 1)
        return ops.argsort(y, axis=-1, descending=False), ops.exp(
            -ops.cum_sum(y, axis=0)
        )

    fast = check(function, tensor(4, 9))
    assert "cum_sum: there is no kernel for it" in fast.explain()
    assert records(fast) == 2


def test_a_branch_on_a_whole_number_is_a_plan_for_each():
    def function(x, n):
        return ops.relu(x) if n == 3 else x * 2

    fast = burnish.compile(function)
    x = tensor(5)
    for n in (3, 4, 3, 5, 4):
        same(fast(x, Tensor(n)), function(x, Tensor(n)))
    assert len(fast._plans) == 3


def test_a_branch_on_values_runs_as_it_is():
    def function(x):
        return ops.relu(x) if float(x.sum().numpy()) > 0 else x * 2

    fast = burnish.compile(function)
    for x in (tensor(5), -tensor(5), tensor(5)):
        same(fast(x), function(x))
    assert "a look at the values" in fast.explain()


def test_arguments_that_are_no_tensors():
    fast = burnish.compile(lambda x, names: ops.relu(x) * len(names))
    x = tensor(3)
    same(fast(x, ("a", "b")), ops.relu(x) * 2)
    same(fast(x, ("a",)), ops.relu(x))
    array = x.numpy()
    same(burnish.compile(lambda a: a + 1)(array), array + 1)


def test_strided_arguments():
    wide = tensor(6, 8).numpy()
    x = Tensor.wrap(wide[::2, ::-2], burnish.Device("cpu"))
    check(lambda x: ops.exp(x) @ Tensor(np.ones((4, 3), np.float32)), x)


def test_results_are_kept_apart():
    fast = burnish.compile(Net())
    first = fast(tensor(2, 3, 5, 5))
    kept = first.numpy().copy()
    fast(tensor(2, 3, 5, 5))
    np.testing.assert_array_equal(first.numpy(), kept)


def test_memory_of_large_results_is_used_again_once_nothing_holds_it():
    fast = burnish.compile(lambda x: x * 2.0)
    x, other = tensor(600, 700), tensor(600, 700)
    first = fast(x)
    part = first.data[3:5].T
    place, wanted = address(first.data), part.copy()
    second = fast(other)
    assert address(second.data) != place
    same(first, Tensor(x.data * 2))
    same(second, Tensor(other.data * 2))
    del first
    fast(other)
    np.testing.assert_array_equal(part, wanted)
    del second, part
    third = fast(x)
    fourth = fast(other)
    assert address(third.data) != address(fourth.data)
    same(third, Tensor(x.data * 2))
    del third, fourth
    places = set()
    for _ in range(3):
        made = fast(x)
        places.add(address(made.data))
        del made
    assert len(places) == 1


def test_an_argument_and_a_constant_as_results():
    weight = tensor(3)
    check(lambda x: (x, x.reshape(6), weight, weight * 2, 5), tensor(2, 3))


def test_errors_are_those_of_the_plain_call():
    fast = burnish.compile(Net())
    with pytest.raises(InputError, match="channels"):
        fast(tensor(2, 4, 5, 5))
    with pytest.raises(InputError, match="expected a module or a function"):
        burnish.compile(3)
    with pytest.raises(InputError, match="a tolerance from 0 to below 1, got 'x'"):
        burnish.compile(Net(), tolerance="x")
    for off in ("conv", None, 3):
        with pytest.raises(InputError, match="expected a tuple of names as off"):
            burnish.compile(Net(), off=off)
    with pytest.raises(InputError, match=r"got 'winogard'; is 'winograd' meant\?"):
        burnish.compile(Net(), off=("conv", "winogard"))


def test_a_plan_lists_its_steps():
    text = burnish.compile(Net()).plan(tensor(2, 3, 5, 5))
    assert re.search(r"conv(_planes)?: conv \+ batch_norm \+ relu", text)
    assert "conv: linear + gelu" in text
    assert "MFLOP" in text


def test_every_record_runs_once():
    first, last = (nn.Conv2d(16, 16, 3, padding=1) for _ in range(2))

    def function(x):
        y = first(x)
        return last(y.sort(-1)) + y  # sort has no kernel: y is brought out of blocks

    x = Tensor(np.random.default_rng(0).standard_normal((1, 16, 8, 8)), "float32")
    plan = check(function, x).planned(x)
    ranges = [range(s.first, s.behind) for s in plan.segments if s.node is None]
    assert [i for each in ranges for i in each] == [*range(len(plan.steps))]


def test_plan_says_that_a_call_with_an_index_out_of_range_runs_eagerly():
    fast = burnish.compile(nn.Embedding(5, 3))
    assert "eagerly" not in fast.plan(Tensor(np.array([1, 2])))
    assert "runs eagerly: a value" in fast.plan(Tensor(np.array([1, 9])))
