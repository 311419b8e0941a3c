"""Programs: what they read anew, how they are differentiated, how they read."""

import functools
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from burnish import Device, Tensor, nn, ops, seed
from burnish.autodiff import backward, no_grad
from burnish.capture import CaptureError, capture
from burnish.checkpointing import checkpoint
from burnish.draws import keep_mask
from burnish.operator import operator, registry
from burnish.optim import SGD
from burnish.steps import step
from tests.runtime.capture.harness import equal, floats, network

X, Y = floats(2, 3), floats(2, 3)


# --- what a run reads and leaves ---


def test_parameters_are_read_in_every_run():
    net = network()
    program = capture(net, X)
    net[0].weight.assign(net[0].weight.numpy() * 2)
    equal(program(Y), net(Y))
    net.load_state_dict({k: v + 1 for k, v in net.state_dict().items()})
    equal(program(Y), net(Y))


def test_a_parameter_in_an_expression_is_read_too():
    net = network()
    program = capture(lambda x: x @ (net[0].weight * 2).T, X)
    net[0].weight.assign(net[0].weight.numpy() * 3)
    equal(program(Y), Y @ (net[0].weight * 2).T)


CHANGES = [
    (lambda net: net.to("cpu:autodiff"), "is on 'cpu:autodiff'"),
    (lambda net: setattr(net[0], "weight", nn.Param(np.ones((4, 3)))), "'weight'"),
    (lambda net: net.apply_lora(2), "'weight' is another one"),
    (lambda net: net.map(lambda path, t: t.double()), "float32 and is float64"),
    (lambda net: setattr(net[1], "p", 0.9), "Dropout net.1 .* setting"),
    (
        lambda net: setattr(net[1], "device", Device("cpu:autodiff")),
        "Dropout net.1",
    ),
    (lambda net: setattr(net[0], "in_features", 5), "Linear net.0 .* setting"),
    (lambda net: net[0].replace("bias", None), "Linear net.0 .* 'bias' is another"),
    (lambda net: delattr(net[1], "p"), "Dropout net.1 .* other attributes"),
    (lambda net: setattr(net[1], "forward", lambda x: x), "Dropout net.1"),
]


@pytest.mark.parametrize(("change", "report"), CHANGES)
def test_a_module_that_has_changed_is_refused(change, report):
    net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5))
    program = capture(lambda x: net(x) * 2, X)
    net.to("cpu")
    program(X)
    change(net)
    with pytest.raises(CaptureError, match=report):
        program(X)


def test_a_list_of_layers_that_grows_is_refused():
    class Stack(nn.Module):
        def __init__(self):
            self.layers = [nn.ReLU()]

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    net = Stack()
    program = capture(net, X)
    net.layers.append(nn.Tanh())
    with pytest.raises(CaptureError, match=r"Stack .*of 1 parts in a row there are 2"):
        program(X)


def tabled():
    """A module with settings and arrays in containers, of its own and of its class."""

    class Tabled(nn.Module):
        scales: ClassVar = [1.0, {"low": 2.0}]
        shift, factor = np.ones(3, np.float32), 3.0

        def __init__(self):
            self.numbers, self.by_name = [1.0, 2.0], {"a": [3.0]}
            self.arrays = [np.ones(3, np.float32), np.full(3, 2, np.float32)]

        def forward(self, x):
            x = x * self.scales[0] * self.scales[1]["low"] + Tensor(self.arrays[0])
            x = x * self.factor + Tensor(self.shift)
            return x * self.numbers[1] + self.by_name["a"][0]

    return Tabled()


IN_CONTAINERS = [
    (lambda net: net.numbers.__setitem__(1, 5.0), "Tabled .*setting"),
    (lambda net: net.by_name["a"].__setitem__(0, 5.0), "Tabled .*setting"),
    (lambda net: net.by_name.clear(), "Tabled .*of 1 parts"),
    (lambda net: net.arrays.reverse(), "Tabled .*its 0 is another"),
    (lambda net: type(net).scales.__setitem__(0, 5.0), "the class Tabled .*setting"),
    (lambda net: type(net).scales[1].update(low=5.0), "the class Tabled .*setting"),
    (lambda net: setattr(type(net), "scales", [1.0, {"low": 4.0}]), "its 'scales'"),
    (lambda net: setattr(type(net), "factor", 5.0), "its 'factor' is another"),
    (lambda net: setattr(type(net), "shift", 2 * net.shift), "its 'shift' is another"),
    (lambda net: delattr(type(net), "factor"), "it has no 'factor'"),
]


@pytest.mark.parametrize(("change", "report"), IN_CONTAINERS)
def test_items_of_containers_that_have_changed_are_refused(change, report):
    net = tabled()
    program = capture(net, X)
    program(X)
    change(net)
    with pytest.raises(CaptureError, match=report):
        program(X)


def test_a_class_that_hides_what_it_inherits_is_refused():
    class Tripled(type(tabled())):
        def shift(self):  # which the base class has as an array
            return None

        def forward(self, x):
            return x * self.factor

    net = Tripled()
    program = capture(net, X)
    equal(program(X), net(X))
    Tripled.factor = 4.0
    with pytest.raises(CaptureError, match="its 'factor' is another one"):
        program(X)


def test_items_of_the_same_value_are_no_change():
    net = tabled()
    program = capture(net, X)
    net.numbers[1] = float("2.0")
    type(net).factor = float("3.0")
    equal(program(X), net(X))


def test_a_frozen_parameter_is_another_one_for_the_gradient():
    net = network().to("cpu:autodiff")
    program = capture(net, X)
    net.freeze()
    with pytest.raises(CaptureError, match="frozen"):
        program(X)


def test_a_tensor_from_outside_is_constant_and_reported_when_it_changes():
    scale, shift = floats(3), floats(3)
    program = capture(lambda x: x * (scale * 2) + shift, X)
    equal(program(Y), Y * (scale * 2) + shift)
    scale.inplace(lambda s: s + 1)
    with pytest.raises(CaptureError, match="a tensor from outside has changed"):
        program(Y)


class Task:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5))

    def __call__(self, x):
        return self.net(x)

    def twice(self, x):
        return self(x) * 2


def nested(net):
    def inner(x):
        return net(x)

    def outer(x, again=True):
        return outer(x, False) if again else inner(x)

    return outer


WAYS = {  #: how a function has its module, and the name of the weight there
    "itself": (lambda task: task.net, "0.weight"),
    "its forward": (lambda task: task.net.forward, "self.0.weight"),
    "an attribute": (lambda task: task, "self.net.0.weight"),
    "a method": (lambda task: task.twice, "self.net.0.weight"),
    "a closure": (lambda task: nested(task.net), "inner.net.0.weight"),
    "an argument": (
        lambda task: functools.partial(lambda net, x: net(x), task.net),
        "argument 0.0.weight",
    ),
    "a program": (lambda task: capture(task.net, X), "0.weight"),
}


@pytest.mark.parametrize(("made", "name"), WAYS.values(), ids=WAYS)
def test_modules_are_found_wherever_a_function_has_them(made, name):
    task = Task()
    function = made(task)
    program = capture(function, X)
    assert f", {name}, " in str(program)
    equal(program(Y), function(Y))
    task.net[1].p = 0.25
    with pytest.raises(CaptureError, match="a setting is another one"):
        program(Y)


def test_what_a_module_keeps_is_refused():
    class Keeps(nn.Module):
        def __init__(self):
            self.last, self.count = None, 0

        def forward(self, x):
            self.last = x * 2
            return x

    class Counts(Keeps):
        def forward(self, x):
            self.count += 1
            return x

    kept = Keeps()
    with pytest.raises(CaptureError, match="keeps the tensor 'last' in Keeps"):
        capture(kept, X)
    assert kept.last is None
    counts = Counts()
    with pytest.raises(CaptureError, match="keeps 'count', 1 in Counts"):
        capture(counts, X)
    assert counts.count == 0


CHANGES_OF_A_CLASS = [
    (lambda kind, x: {"count": kind.count + 1}, "keeps 'count', 1 in the class Counts"),
    (lambda kind, x: {"new": "word"}, "keeps 'new', 'word' in the class Counts"),
    (lambda kind, x: {"last": x * 2}, "keeps the tensor 'last' in the class Counts"),
    (lambda kind, x: kind.log.update(a=1) or {}, "items of 'log' of the class Counts"),
]


@pytest.mark.parametrize(("change", "report"), CHANGES_OF_A_CLASS)
def test_what_a_class_keeps_is_refused(change, report):
    class Counts(nn.Module):
        count, last = 0, None
        log: ClassVar = {}

        def forward(self, x):
            for name, value in change(type(self), x).items():
                setattr(type(self), name, value)
            return x * 2

    with pytest.raises(CaptureError, match=report):
        capture(Counts(), X)
    assert (Counts.count, Counts.last, Counts.log) == (0, None, {})
    assert not hasattr(Counts, "new")


def test_a_container_of_a_class_may_hold_itself():
    net = tabled()
    net.scales.append(net.scales)
    program = capture(net, X)
    equal(program(X), net(X))
    net.scales[0] = 5.0
    with pytest.raises(CaptureError, match="a setting is another one"):
        program(X)


def test_a_container_of_a_module_may_hold_itself():
    class Own(nn.Module):
        def __init__(self):
            self.linear, self.scales = nn.Linear(3, 2), [2.0]
            self.scales.append(self.scales)

        def forward(self, x):
            return self.linear(x) * self.scales[0]

    net = Own()
    assert [*net.state_dict()] == ["linear.weight", "linear.bias"]
    program = capture(net, X)
    equal(program(X), net(X))


def test_a_tensor_that_outlives_its_capture_is_reported():
    held = SimpleNamespace()
    capture(lambda x: setattr(held, "tensor", x * 2), X)
    for use in (lambda t: t + 1, lambda t: t.numpy(), lambda t: float(t.sum())):
        with pytest.raises(CaptureError, match="is of a capture that is over"):
            use(held.tensor)
    with pytest.raises(CaptureError, match="a tensor of another capture is used"):
        capture(lambda x: x + held.tensor, X)


def test_random_numbers_are_drawn_in_every_run_and_not_by_the_capture():
    def noisy(x):
        kept = ops.dropout(x, p=0.5) + Tensor.randn(*x.shape) + Tensor.rand(3)
        Tensor.rand(5)  # drawn by every call, though nobody uses it
        chosen = x.abs().multinomial(2)
        return kept + x.random_like(), chosen

    seed(0)
    program = capture(noisy, X)
    got = [program(Y) for _ in range(2)]
    seed(0)
    want = [noisy(Y) for _ in range(2)]
    for one, other in zip(got, want, strict=True):
        equal(one[0], other[0])
        equal(one[1], other[1])
    assert not np.array_equal(got[0][0].numpy(), got[1][0].numpy())


# --- gradients ---


def test_gradients_stop_where_the_function_stops_them():
    w = nn.Param(np.ones((2, 3), "f4"))
    w.place(Device("cpu:autodiff"))

    def partly(x):
        with no_grad():
            still = (x * w).sum()
        return (w * x + (w * 2).detach() * still).sum() + (w.inner() * 3).sum()

    program = capture(partly, X)
    got, want = program(Y), partly(Y)
    equal(got, want)
    equal(w.grad(got.backward()), w.grad(want.backward()))
    equal(w.grad(got.backward()).inner(), Y)


def test_gradients_of_inputs_and_of_gradients():
    def cubes(x):
        return (x.clone() ** 3).sum()

    leaf = X.require_grad()
    program = capture(cubes, leaf)
    other = Y.require_grad()
    slope = other.grad(backward(program(other), create_graph=True))
    equal(slope.inner(), 3 * Y**2)
    np.testing.assert_allclose(
        other.grad(slope.sum().backward()).numpy(), 6 * Y.numpy(), rtol=1e-6
    )


@pytest.mark.parametrize("device", ["cpu:autodiff", "cpu:autodiff:balanced"])
def test_a_program_is_checkpointed_as_a_function_is(device):
    net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.GELU()).to(device)
    program = capture(net, X)
    seed(0)
    got = checkpoint(program, Y).sum()
    seed(0)
    want = net(Y).sum()
    equal(got, want)
    for one, other in zip(net.parameters(), net.parameters(), strict=True):
        equal(one.grad(got.backward()), other.grad(want.backward()))
    with pytest.raises(CaptureError, match="checkpoint the program"):
        capture(lambda x: checkpoint(net, x), X)
    inference = net.valid()
    equal(capture(lambda x: checkpoint(inference, x), X)(Y), inference(Y))


# --- what becomes of the calls ---


def test_a_program_within_a_function_that_is_captured():
    net = network()
    inner = capture(lambda x: net(x).detach(), X)
    outer = capture(lambda x: inner(x * 2), X)
    equal(outer(Y), net(Y * 2))
    assert len(outer) == len(inner) + 1
    net[0].weight = nn.Param(np.ones((4, 3), "f4"))
    with pytest.raises(CaptureError, match="'weight' is another one"):
        outer(Y)


def test_calls_that_nothing_depends_on_are_left_out():
    def wasteful(x):
        x.exp().sum()
        Y.exp()  # constant
        return x + 1

    assert len(capture(wasteful, X)) == 1


def test_results_that_do_not_depend_on_arguments():
    constant = Tensor([1.0, 2.0])
    got = capture(lambda x: (constant, x.shape, "words", constant * 2), X)(Y)
    assert got[:3] == (constant, (2, 3), "words")
    equal(got[3], constant * 2)


def test_shapes_that_depend_on_values_are_reported():
    program = capture(lambda x: x[x > 0].sum(), Tensor([1.0, -1.0, 2.0]))
    assert program(Tensor([-3.0, 4.0, 5.0])).item() == 9.0
    with pytest.raises(
        CaptureError, match=r"values gave|getitem gave shape \(3,\), in the"
    ):
        program(Tensor([1.0, 2.0, 3.0]))


def test_indices_that_are_tensors():
    def picked(x, i):
        return x[i], x[0, i], x[..., i[:1], None], x.set_item(i[0], 0.0)

    program = capture(picked, X, Tensor([0, 1]))
    given = Y, Tensor([1, 0])
    for one, other in zip(program(*given), picked(*given), strict=True):
        equal(one, other)


def test_inplace_of_a_tensor_of_its_own():
    def counted(x):
        y = x * 2
        y.inplace(lambda t: t + x)
        return y * 3

    equal(capture(counted, X)(Y), counted(Y))


def test_operators_and_steps_of_a_user():
    @operator
    def captured_twice(x):
        return x * 2

    @step
    def doubled(x):
        return np.where(x > 0, x, 2 * x)

    @step
    def number(x):
        return float(x.sum())

    try:
        program = capture(lambda x: captured_twice(x) * doubled(x), X)
        equal(program(Y), captured_twice(Y) * doubled(Y))
        with pytest.raises(CaptureError, match="expected arrays of number, got"):
            capture(lambda x: x * number(x), X)
    finally:
        del registry["captured_twice"]


LISTING = """\
scaled(
    x: float32 (2, 3),
    scales[0]: float32 (3,),
    power: 2,
):
    %0 = getitem(x, index=(slice(1, None, None), Ellipsis))  float32 (1, 3)
    %1 = linear(%0, net.weight, None)                        float32 (1, 4)
    %2 = pow(%1, 2)                                          float32 (1, 4)
    %3 = mul(scales[0], array int64 (3,))                    float64 (3,)
    %4, %5 = split(%3, sizes=(1, 2))                         float64 (1,), float64 (2,)
    %6 = mul(net.weight, 2)                                  float32 (4, 3)
    assign(net.weight, %6, dtype=None)
    %7 = keep_mask((2, 3), 0.5, Device('cpu'))               bool (2, 3)
    return {'y': %2, 'parts': [%4, %7], 'none': None}"""


def test_a_program_reads_as_a_list_of_calls():
    net = nn.Linear(3, 4, bias=False)

    def scaled(x, scales, power):
        y = net(x[1:, ...]) ** power
        first, _ = ops.split(scales[0] * np.arange(3), sizes=(1, 2))
        net.weight.assign(net.weight * 2)
        kept = keep_mask(x.shape, 0.5, x.device)
        return {"y": y, "parts": [first, kept], "none": None}

    program = capture(scaled, X, (floats(3),), 2)
    assert str(program) == LISTING
    assert repr(program) == "<program scaled: 8 calls>"


def test_the_optimizer_is_outside():
    net = network().to("cpu:autodiff")

    def whole(x):
        loss = net(x).sum()
        SGD().step(0.1, net, loss.backward())
        return loss

    with pytest.raises(CaptureError, match="backward"):
        capture(whole, X)
