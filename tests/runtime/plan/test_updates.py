"""Updates of parameters by records: over the old values, where nobody else has them."""

import threading

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops, optim
from burnish.autodiff import no_grad
from burnish.errors import InputError
from burnish.kernels import library

pytestmark = [
    pytest.mark.usefixtures("canaries"),
    pytest.mark.skipif(library() is None, reason="there is no compiler"),
]

RULES = {
    "sgd": optim.SGD,
    "momentum": lambda: optim.SGD(momentum=0.9, dampening=0.1, weight_decay=0.1),
    "nesterov": lambda: optim.SGD(momentum=0.9, nesterov=True, maximize=True),
    "adam": lambda: optim.Adam(weight_decay=0.1),
    "amsgrad": lambda: optim.Adam(amsgrad=True),
    "adamw": optim.AdamW,
    "adamax": lambda: optim.Adamax(weight_decay=0.1, maximize=True),
    "nadam": optim.NAdam,
    "decoupled nadam": lambda: optim.NAdam(
        weight_decay=0.1, decoupled_weight_decay=True
    ),
    "radam": lambda: optim.RAdam(weight_decay=0.1),
    "radam of few squares": lambda: optim.RAdam(betas=(0.9, 0.8)),
    "adan": lambda: optim.Adan(weight_decay=0.1),
    "adan without proximal decay": lambda: optim.Adan(weight_decay=0.1, no_prox=True),
    "rmsprop": lambda: optim.RMSprop(alpha=0.5, momentum=0.5, weight_decay=0.1),
    "centered rmsprop": lambda: optim.RMSprop(alpha=0.5, centered=True),
    "adagrad": lambda: optim.Adagrad(initial_accumulator_value=0.1, lr_decay=0.1),
    "adadelta": lambda: optim.Adadelta(weight_decay=0.1),
    "rprop": optim.Rprop,
    "cautious": lambda: optim.AdamW(cautious_weight_decay=True, weight_decay=0.5),
}


def network():
    burnish.seed(5)
    layers = nn.Linear(20, 33), nn.ReLU(), nn.Linear(33, 5)
    model = nn.Sequential(*layers).to("cpu:autodiff")
    for param in model.parameters():
        param.assign(np.array(param.data))  # made now, of this seed
    return model


def batch(i):
    rng = np.random.default_rng(i)
    x = Tensor(rng.normal(size=(8, 20)).astype(np.float32))
    return x, Tensor(rng.integers(0, 5, 8))


class Trained:
    """A network, its optimizer, and its step: planned, or as it is."""

    def __init__(self, rule=optim.Adam, planned=True, also=lambda model: None):
        self.model, self.rule = model, optimizer = network(), rule()

        def step(x, labels, rate):
            loss = nn.cross_entropy(model(x), labels)
            found = also(model)
            optimizer.step(rate, model, loss.backward())
            return loss, found

        self.step = burnish.compile(step) if planned else step
        self.planned = planned

    def run(self, steps, first=0):
        made = []
        for i in range(first, first + steps):
            made.append(self.step(*batch(i), 0.05 / (1 + i)))
        if self.planned and steps:
            report = self.step.explain()
            assert "one plan" in report
            assert "stepped" not in report, report
        return made

    @property
    def weights(self):
        return {path: np.array(p.data) for path, p in self.model.named_parameters()}


def same(one, other):
    for path, array in one.weights.items():
        np.testing.assert_allclose(
            other.weights[path], array, rtol=1e-5, atol=1e-6, err_msg=path
        )


@pytest.mark.parametrize("rule", RULES)
def test_the_weights_are_those_of_plain_steps(rule):
    fast, plain = Trained(RULES[rule]), Trained(RULES[rule], planned=False)
    start = plain.weights
    fast.run(4), plain.run(4)
    same(plain, fast)
    assert any((start[path] != array).any() for path, array in fast.weights.items())
    states = [each.rule.state_dict() for each in (plain, fast)]
    assert states[0].keys() == states[1].keys()
    for key, array in states[0].items():
        np.testing.assert_allclose(states[1][key], array, rtol=1e-4, atol=1e-6)


def test_values_that_nobody_reads_are_written_over():
    made = Trained()
    made.run(2)

    def places():
        return [p.data.ctypes.data for p in made.model.parameters()]

    before = places()
    made.run(2, 2)
    assert places() == before


READERS = {
    "array": lambda p: p.data,
    "part": lambda p: p.data[1:],
    "transposed": lambda p: p.data.T,
    "tensor": lambda p: p.detach().data,
    "copy": lambda p: p.copy().data,
    "buffer": lambda p: memoryview(p.data),
}


@pytest.mark.parametrize("steps", [0, 1, 3])
@pytest.mark.parametrize("reader", READERS)
def test_what_was_read_never_changes(reader, steps):
    made, plain = Trained(), Trained(planned=False)
    made.run(steps), plain.run(steps)
    kept = [READERS[reader](p) for p in made.model.parameters()]
    were = [np.array(each) for each in kept]
    made.run(2, steps), plain.run(2, steps)
    for each, was in zip(kept, were, strict=True):
        np.testing.assert_array_equal(np.asarray(each), was)
    same(plain, made)


@pytest.mark.parametrize(
    "also",
    [
        lambda model: model[0].weight.reshape(-1),
        lambda model: model[0].weight[3:, ::2],
        lambda model: model[0].weight.swapaxes(0, 1) * 1,
    ],
)
def test_results_are_of_before_the_update(also):
    made, plain = Trained(also=also), Trained(planned=False, also=also)
    found = [made.step(*batch(i), 0.05)[1] for i in range(3)]
    wanted = [plain.step(*batch(i), 0.05)[1] for i in range(3)]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)
    assert (found[0].numpy() != found[1].numpy()).any()


def test_a_copy_for_inference_stays_as_it_is():
    made = Trained()
    x, _ = batch(9)
    for i in range(3):
        made.run(1, i)
        copy = made.model.valid()  # whose parameters share the arrays
        predict = burnish.compile(copy)
        before = predict(x).numpy()
        np.testing.assert_allclose(before, copy(x).numpy(), rtol=1e-5, atol=1e-6)
        made.run(1, i)
        np.testing.assert_array_equal(predict(x).numpy(), before)


def test_another_plan_of_the_module_sees_the_new_values():
    made = Trained()
    predict = burnish.compile(made.model)
    x, _ = batch(9)
    seen = []
    for i in range(3):
        made.run(1, i)
        with no_grad():
            seen.append(predict(x).numpy())
            np.testing.assert_allclose(
                seen[-1], made.model(x).numpy(), rtol=1e-5, atol=1e-6
            )
    assert (seen[0] != seen[1]).any()


def test_settings_of_the_rule_may_change():
    made, plain = Trained(), Trained(planned=False)
    for i, (name, value) in enumerate(
        [("betas", (0.5, 0.9)), ("weight_decay", 0.3), ("maximize", True)]
    ):
        made.run(2, 2 * i), plain.run(2, 2 * i)
        for each in (made, plain):
            setattr(each.rule, name, value)
    made.run(2, 6), plain.run(2, 6)
    same(plain, made)
    for i, clip in enumerate(
        [optim.ClipGlobalNorm(1e-3), optim.ClipGlobalNorm(1e-2), None]
    ):
        for each in (made, plain):
            each.rule.clip = clip
        made.run(2, 8 + 2 * i), plain.run(2, 8 + 2 * i)
        same(plain, made)
    for each in (made, plain):
        each.rule.clip = lambda gradients: gradients
    made.step(*batch(14), 0.05), plain.step(*batch(14), 0.05)
    same(plain, made)
    assert "clips gradients by a function" in made.step.explain()


def test_state_may_be_read_loaded_and_read_only():
    made, plain = Trained(), Trained(planned=False)
    made.run(2), plain.run(2)
    for each in (made, plain):
        state = {k: np.array(v) for k, v in each.rule.state_dict().items()}
        for array in state.values():
            array.flags.writeable = False
        each.rule.load_state_dict(state)
        each.run(2, 2)
        for key, array in state.items():
            assert not array.flags.writeable, key
    same(plain, made)


def test_a_rate_that_is_none_changes_nothing():
    made = Trained()
    made.run(2)
    before = made.weights
    with pytest.raises(InputError, match="learning rate"):
        made.step(*batch(3), -1.0)
    for path, array in made.weights.items():
        np.testing.assert_array_equal(array, before[path])
    made.run(1, 3)


def test_a_rate_may_be_a_tensor():
    """Its updates run eagerly; all else is planned."""
    made, plain = Trained(), Trained(planned=False)
    for i in range(3):
        rate = Tensor(np.float32(0.05 / (1 + i)))
        made.step(*batch(i), rate)
        plain.step(*batch(i), rate)
    same(plain, made)
    assert "1 x stepped: its learning rate is a tensor" in made.step.explain()


def test_two_rules_and_two_steps_at_once():
    def make(planned):
        model = network()
        rules = optim.SGD(momentum=0.5), optim.Adam()

        def step(x, labels):
            losses = []
            for some in (rules[:1], rules, rules[:1]):
                losses.append(nn.cross_entropy(model(x), labels))
                gradients = losses[-1].backward()
                for rule in some:
                    rule.step(0.02, model, gradients)
            return losses

        fast = burnish.compile(step) if planned else step
        made = [[each.item() for each in fast(*batch(i))] for i in range(3)]
        return made, [np.array(p.data) for p in model.parameters()]

    fast, plain = make(True), make(False)
    np.testing.assert_allclose(fast[0], plain[0], rtol=1e-4, atol=1e-5)
    for one, other in zip(fast[1], plain[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


def test_parameters_that_share_an_array_train_apart():
    def make(planned):
        model, rule = network(), optim.Adam()
        one, other = model[0].bias, nn.Param(model[0].bias.data)
        other.place(one.device)
        model.extra = other

        def both(x, labels):
            loss = nn.cross_entropy(model(x), labels) + (model.extra**2).sum()
            rule.step(0.05, model, loss.backward())
            return loss

        step = burnish.compile(both) if planned else both
        for i in range(3):
            step(*batch(i))
        return np.array(one.data), np.array(other.data)

    for one, other in zip(make(True), make(False), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_other_threads_read_whole_updates():
    """An array that another thread reads is of before or of behind a step."""
    layers = nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 4)
    model = nn.Sequential(*layers).to("cpu:autodiff")
    rule = optim.SGD()

    @burnish.compile
    def step(x, rate):
        loss = model(x).sum()
        rule.step(rate, model, loss.backward())
        return loss

    for param in model.parameters():
        param.assign(np.zeros(param.shape, np.float32))
    x = Tensor(np.ones((4, 256), np.float32))
    faults, reads, over = [], [], threading.Event()

    def read():
        while not over.is_set():
            array = model[2].bias.data  # its gradient is 4 in every step
            first = np.array(array)
            if np.unique(first).size != 1 or (np.asarray(array) != first).any():
                faults.append(first)
            reads.append(1)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for each in readers:
        each.start()
    for _ in range(60):
        step(x, 1.0)
    over.set()
    for each in readers:
        each.join()
    assert reads
    assert not faults
    np.testing.assert_array_equal(model[2].bias.data, np.full(4, -240, np.float32))


def test_gradients_that_are_results_stay():
    model, rule = network(), optim.Adam()

    @burnish.compile
    def step(x, labels):
        gradients = nn.cross_entropy(model(x), labels).backward()
        rule.step(0.05, model, gradients)
        return [gradients.get(p) for p in model.parameters()]

    found = step(*batch(0))
    were = [np.array(each.numpy()) for each in found]
    step(*batch(1))
    for each, was in zip(found, were, strict=True):
        np.testing.assert_array_equal(each.numpy(), was)
    assert all(np.abs(each).max() > 0 for each in were)


def test_an_eager_view_of_a_parameter_stays():
    """What a step without a kernel makes of a parameter is of before the update."""

    def make(planned):
        model, rule = network(), optim.SGD()

        def step(x, labels):
            rolled = ops.roll(model[0].weight, 1, 0)
            loss = nn.cross_entropy(model(x), labels)
            rule.step(0.1, model, loss.backward())
            return loss, (rolled * 2).sum(axis=1)

        fast = burnish.compile(step) if planned else step
        return [fast(*batch(i))[1].numpy() for i in range(3)]

    np.testing.assert_allclose(make(True), make(False), rtol=1e-4, atol=1e-5)
