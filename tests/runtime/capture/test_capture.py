"""Programs: what they read anew, what they refuse, how they are read."""

import functools

import numpy as np
import pytest

from burnish import Tensor, nn, ops, seed
from burnish.autodiff import backward, no_grad
from burnish.capture import CaptureError, capture
from burnish.checkpointing import checkpoint
from burnish.distributions import Bernoulli
from burnish.draws import keep_mask
from burnish.named import NamedTensor
from burnish.operator import operator, registry
from burnish.optim import SGD
from burnish.steps import step

RNG = np.random.default_rng(0)


def floats(*shape, device="cpu"):
    return Tensor(RNG.normal(size=shape).astype("float32"), device=device)


X, Y = floats(2, 3), floats(2, 3)


def equal(one, other):
    np.testing.assert_array_equal(one.numpy(), other.numpy(), strict=True)


def model():
    seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


# --- what would be a wrong number is refused where it happens ---

READS = {
    "float": lambda x: x * float(x.sum()),
    "int": lambda x: x * int(x.sum()),
    "bool": lambda x: x if x.sum() > 0 else -x,
    "and": lambda x: x.sum() > 0 and x,
    "item": lambda x: x * x.max().item(),
    "numpy": lambda x: Tensor(x.numpy() * 2),
    "tolist": lambda x: Tensor(x.tolist()),
    "asarray": lambda x: x + np.asarray(x),
    "stack": lambda x: Tensor(np.stack([x, x])),
    "data": lambda x: ops.where(x.data > 0, x, 0),
    "wrap": lambda x: x.wrap(x.data, x.device),
    "index": lambda x: [x, -x][x.sum().long()],
    "slice": lambda x: x[: x.sum().long()],
    "range": lambda x: [x for _ in range(x.sum().long())],
    "in": lambda x: x if x.sum() in [1.0] else -x,
    "max": lambda x: max(x[0, 0], x[0, 1]),
    "all_close": lambda x: x.all_close(x),
    "format": lambda x: f"{x.sum().item():.1f}",
    "copy": lambda x: Tensor(x),
    "dlpack": lambda x: np.from_dlpack(x),
    "quantize": lambda x: x * x.sum().quantize_dynamic(None).scale,
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_reading_values_is_refused_with_the_place(read):
    with pytest.raises(Exception, match=r"test_capture.py:\d+, in <lambda>: |quantize"):
        capture(read, X)


def test_a_refusal_names_the_layer_and_what_it_did():
    class Gate(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    told = r"in .*Gate.forward: expected operators alone, got a look .* by bool\(\)"
    with pytest.raises(CaptureError, match=told):
        capture(nn.Sequential(Gate()), X)


NET = model()
STATE = {"module": NET}
OTHER_REFUSALS = {
    "a parameter": (lambda x: x * NET[0].weight.numpy()[0], "a look at the values of"),
    "a state": (lambda x: x * NET.state_dict()["0.bias"][0], "a look at the values of"),
    "backward": (lambda x: x.require_grad().sum().backward(), "backward"),
    "gradient": (lambda x: backward((x * 1).require_grad(), x), "backward"),
    "a draw": (lambda x: x + Bernoulli(0.5).draw(x.shape, x.dtype, x.device), "random"),
    "a seed": (lambda x: (seed(1), x)[1], "random numbers"),
    "capture": (lambda x: capture(ops.neg, x)(x), "a capture begins within"),
    "argument": (lambda x: x.inplace(lambda t: t + 1), "an argument is changed"),
    "outside": (lambda x: Y.inplace(lambda t: t + 1) + x, "from outside is changed"),
    "named": (lambda x: NamedTensor(x, "a", "b"), "got a NamedTensor"),
    "a generator": (lambda x: (x for _ in range(2)), "got a generator"),
    "cache": (lambda x: nn.cache.TensorCache().extend(x), "a cache grows"),
}


@pytest.mark.parametrize(
    ("function", "told"), OTHER_REFUSALS.values(), ids=OTHER_REFUSALS
)
def test_other_refusals(function, told):
    with pytest.raises(CaptureError, match=told):
        capture(function, X)
    equal(capture(lambda x: x + 1, X)(Y), Y + 1)  # nothing is left behind


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (X.numpy(), "got a ndarray; put it into a Tensor"),
        ({1, 2}, "expected tensors, numbers and words .* got a set"),
        (NamedTensor(X, "a", "b"), "got a NamedTensor"),
    ],
)
def test_arguments_that_a_program_cannot_hold(given, told):
    with pytest.raises(CaptureError, match=told):
        capture(lambda x, other: x, X, given)


# --- what a run is given ---


def mixed(x, more, scale=1.0, *, shift=None):
    y = x * scale + more["first"] - more["rest"][1]
    return {"y": y, "parts": [y if shift is None else y + shift, x], "none": None}


def test_containers_numbers_and_words():
    more = {"first": Y, "rest": (X, X)}
    program = capture(mixed, X, more, 2.0, shift=Y)
    given = floats(2, 3), {"first": floats(2, 3), "rest": (Y, floats(2, 3))}
    got, want = (f(*given, 2.0, shift=X) for f in (program, mixed))
    equal(got["y"], want["y"])
    equal(got["parts"][0], want["parts"][0])
    assert got["parts"][1] is given[0]
    assert got["none"] is None


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (
            (floats(3, 3), {"first": Y}, 2.0),
            r"x: float32 \(2, 3\), got float32 \(3, 3\)",
        ),
        ((X.double(), {"first": Y}, 2.0), r"x: float32 \(2, 3\), got float64 \(2, 3\)"),
        ((X.to("cpu:autodiff"), {"first": Y}, 2.0), "got .* on cpu:autodiff;"),
        ((X.require_grad(), {"first": Y}, 2.0), "on cpu:autodiff with requires_grad"),
        ((X, {"first": Y}, 3.0), "scale: 2.0, got 3.0"),
        ((X, {"first": Y}, 2), "scale: 2.0, got 2"),
        ((X, {"first": Y}), "scale: 2.0, got none"),
        ((X, {"second": Y}, 2.0), r"more\['first'\]: float32 \(2, 3\), got none"),
        ((X, {"first": Y}, 2.0, 1), "expected nothing else, got argument 3"),
        ((X, {"first": 1.0}, 2.0), r"more\['first'\]: float32 \(2, 3\), got 1.0"),
        ((X.numpy(), {"first": Y}, 2.0), "got a ndarray; put it into a Tensor"),
    ],
)
def test_arguments_of_another_kind_are_refused(args, told):
    def scaled(x, more, scale):
        return x * scale + more["first"]

    program = capture(scaled, X, {"first": Y}, 2.0)
    with pytest.raises(CaptureError, match=told):
        program(*args)


def test_one_tensor_given_twice_stays_two_arguments():
    program = capture(lambda a, b: a - b, X, X)
    equal(program(X, Y), X - Y)


def test_results_of_runs_share_nothing():
    program = capture(lambda x: x + 1, X)
    first = program(X)
    second = program(Y)
    equal(first, X + 1)
    equal(second, Y + 1)


# --- what a run reads and leaves ---


def test_parameters_are_read_in_every_run():
    net = model()
    program = capture(net, X)
    net[0].weight.assign(net[0].weight.numpy() * 2)
    equal(program(Y), net(Y))
    net.load_state_dict({k: v + 1 for k, v in net.state_dict().items()})
    equal(program(Y), net(Y))


def test_a_parameter_in_an_expression_is_read_too():
    net = model()
    program = capture(lambda x: x @ (net[0].weight * 2).T, X)
    net[0].weight.assign(net[0].weight.numpy() * 3)
    equal(program(Y), Y @ (net[0].weight * 2).T)


def changed(change, told):
    return pytest.param(change, told)


CHANGES = [
    changed(
        lambda net: net.to("cpu:autodiff"), r"0.weight .* and is on 'cpu:autodiff'"
    ),
    changed(
        lambda net: setattr(net[0], "weight", nn.Param(np.ones((4, 3)))), "'weight'"
    ),
    changed(lambda net: net.apply_lora(2), "'weight' is another one"),
    changed(lambda net: net.map(lambda path, t: t.double()), "float32 and is float64"),
    changed(lambda net: setattr(net[1], "p", 0.9), "Dropout net.1 .* setting"),
    changed(
        lambda net: setattr(
            net[1], "device", nn.Linear(1, 1).to("cpu:autodiff").device
        ),
        "Dropout net.1",
    ),
]


@pytest.mark.parametrize(("change", "told"), CHANGES)
def test_a_module_that_has_changed_is_refused(change, told):
    net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5))
    program = capture(lambda x: net(x) * 2, X)
    change(net)
    with pytest.raises(CaptureError, match=told):
        program(X)


def test_a_frozen_parameter_is_another_one_for_the_gradient():
    net = model().to("cpu:autodiff")
    program = capture(net, X)
    net.freeze()
    with pytest.raises(CaptureError, match="frozen"):
        program(X)


def test_a_tensor_from_outside_is_constant_and_told_when_it_changes():
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
    with pytest.raises(CaptureError, match="keeps 'count', 1 in Counts"):
        capture(Counts(), X)


def test_a_tensor_that_outlives_its_capture_is_told():
    held = []
    capture(lambda x: held.append(x * 2), X)
    for use in (lambda t: t + 1, lambda t: t.numpy(), lambda t: float(t.sum())):
        with pytest.raises(CaptureError, match="is of a capture that is over"):
            use(held[0])
    with pytest.raises(CaptureError, match="a tensor of another capture is used"):
        capture(lambda x: x + held[0], X)


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
    w.place(floats(1, device="cpu:autodiff").device)

    def partly(x):
        with no_grad():
            still = (x * w).sum()
        return (w * x + (w * 2).detach() * still).sum() + (w.inner() * 3).sum()

    program = capture(partly, X)
    got, want = program(Y), partly(Y)
    equal(got, want)
    equal(w.grad(got.backward()), w.grad(want.backward()))
    equal(w.grad(got.backward()), Y)


def test_gradients_of_inputs_and_of_gradients():
    def cubes(x):
        return (x.clone() ** 3).sum()

    leaf = X.require_grad()
    program = capture(cubes, leaf)
    other = Y.require_grad()
    slope = other.grad(backward(program(other), create_graph=True))
    equal(slope, 3 * Y**2)
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
    net = model()
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


def test_shapes_that_depend_on_values_are_told():
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
    %2 = pow_(%1, 2)                                         float32 (1, 4)
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
    net = model().to("cpu:autodiff")

    def whole(x):
        loss = net(x).sum()
        SGD().step(0.1, net, loss.backward())
        return loss

    with pytest.raises(CaptureError, match="backward"):
        capture(whole, X)
