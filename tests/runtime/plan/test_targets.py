"""Losses of classes in planned steps: targets are looked at by a kernel."""

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops, optim
from burnish.errors import InputError
from burnish.kernels import library
from tests.runtime.plan.checks import check

pytestmark = [
    pytest.mark.usefixtures("canaries"),
    pytest.mark.skipif(library() is None, reason="there is no compiler"),
]

CLASSES, COUNT, IGNORED = 7, 12, -100
SHARES = Tensor(np.array([1, 0.5, 2, 0, 1, 3, 0.25], np.float32))
OPTIONS = {
    "mean": {},
    "sum": {"reduction": "sum"},
    "each": {"reduction": "none"},
    "a class ignored": {"ignore_index": 3},
    "weights": {"weight": SHARES},
    "weights, a class ignored": {"weight": SHARES, "ignore_index": 1},
    "smoothed": {"label_smoothing": 0.1},
    "smoothed, each": {"label_smoothing": 0.2, "reduction": "none"},
    "smoothed, weights": {"label_smoothing": 0.1, "weight": SHARES},
}


def targets(seed, ignored=IGNORED, kind="int64"):
    """Classes, a few of them ignored; of the last seed all."""
    random = np.random.default_rng(seed)
    found = random.integers(0, CLASSES, COUNT)
    found[random.random(COUNT) < (0.2 if seed < 3 else 1)] = ignored
    return Tensor(found.astype(kind))


def log_loss(scores, classes, **options):
    return nn.nll_loss(ops.log_softmax(scores, axis=-1), classes, **options)


def trained(planned, options, kind="int64", loss=nn.cross_entropy):
    """The losses of steps, and the weights behind them."""
    model = nn.Linear(5, CLASSES).to("cpu:autodiff")
    random = np.random.default_rng(1)
    for param in (model.weight, model.bias):
        param.assign(random.normal(size=param.shape).astype(np.float32))
    rule, ignored = optim.Adam(), options.get("ignore_index", IGNORED)

    def step(x, classes):
        losses = loss(model(x), classes, **options)
        rule.step(0.1, model, losses.sum().backward())
        return losses

    call = burnish.compile(step) if planned else step
    found = []
    for seed in range(4):
        x = Tensor(random.normal(size=(COUNT, 5)).astype(np.float32))
        found.append(call(x, targets(seed, ignored, kind)).numpy())
    report = call.explain() if planned else ""
    return found, [np.array(p.data) for p in (model.weight, model.bias)], report


@pytest.mark.parametrize(
    ("loss", "name"),
    [
        *((nn.cross_entropy, name) for name in OPTIONS),
        *((log_loss, name) for name in OPTIONS if "smoothed" not in name),
    ],
)
def test_a_loss_of_classes_is_planned_whole(loss, name):
    losses, weights, report = trained(True, OPTIONS[name], loss=loss)
    wanted, wanted_weights, _ = trained(False, OPTIONS[name], loss=loss)
    assert "nothing eagerly" in report
    np.testing.assert_allclose(losses, wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(weights[0], wanted_weights[0], atol=1e-4)
    np.testing.assert_allclose(weights[1], wanted_weights[1], atol=1e-4)


@pytest.mark.parametrize("kind", ["int32", "int16", "int8", "uint8"])
def test_classes_of_fewer_bits(kind):
    options = {"ignore_index": 3}
    losses, _, report = trained(True, options, kind)
    wanted, *_ = trained(False, options)
    assert "nothing eagerly" in report
    np.testing.assert_allclose(losses, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("wrong", [CLASSES, -1])
@pytest.mark.parametrize(
    ("function", "options"),
    [
        (nn.cross_entropy, {}),
        (nn.cross_entropy, {"label_smoothing": 0.1}),
        (log_loss, {}),
    ],
)
def test_a_target_that_is_no_class_changes_nothing(wrong, function, options):
    model, rule = nn.Linear(5, CLASSES).to("cpu:autodiff"), optim.Adam()

    @burnish.compile
    def step(x, classes):
        loss = function(model(x), classes, **options)
        rule.step(0.1, model, loss.backward())
        return loss

    x, classes = Tensor(np.ones((3, 5), np.float32)), Tensor(np.array([0, 1, 2]))
    step(x, classes)
    before = np.array(model.weight.data)
    with pytest.raises(InputError, match=f"expected classes from 0 to {CLASSES - 1}"):
        step(x, Tensor(np.array([0, wrong, 2])))
    np.testing.assert_array_equal(model.weight.data, before)
    step(x, classes)
    assert (np.array(model.weight.data) != before).any()


def test_targets_are_looked_at_before_the_first_of_two_updates():
    first, second = (nn.Linear(5, CLASSES).to("cpu:autodiff") for _ in range(2))
    rules = optim.SGD(), optim.SGD()

    @burnish.compile
    def step(x, classes, others):
        for model, rule, wanted in (
            (first, rules[0], classes),
            (second, rules[1], others),
        ):
            rule.step(0.1, model, nn.cross_entropy(model(x), wanted).backward())

    x, classes = Tensor(np.ones((3, 5), np.float32)), Tensor(np.array([0, 1, 2]))
    step(x, classes, classes)
    assert "nothing eagerly" in step.explain()
    before = np.array(first.weight.data)
    with pytest.raises(InputError, match="expected classes"):
        step(x, classes + CLASSES, classes)
    np.testing.assert_array_equal(first.weight.data, before)


@pytest.mark.parametrize("name", OPTIONS)
def test_a_plan_without_updates_has_the_plain_loss(name):
    x = np.random.default_rng(2).normal(size=(COUNT, CLASSES)).astype(np.float32)
    ignored = OPTIONS[name].get("ignore_index", IGNORED)
    for seed in (0, 3):
        check(
            lambda x, classes: nn.cross_entropy(x, classes, **OPTIONS[name]),
            Tensor(x), targets(seed, ignored),
        )  # fmt: skip


def padded(ids):
    """Which places of a batch are padded: those of 0."""
    return ids == 0


@pytest.mark.parametrize("causal", [False, True])
def test_attention_with_padding_is_planned_whole(causal):
    """Keys that are padded, alone and beside a mask of numbers to add."""

    def run(planned):
        model = nn.MultiheadAttention(8, 2, batch_first=True).to("cpu:autodiff")
        random = np.random.default_rng(1)
        for _, param in sorted(model.named_parameters()):
            param.assign(random.normal(size=param.shape).astype(np.float32))
        rule = optim.SGD()
        added = np.triu(np.full((6, 6), -np.inf, np.float32), 1) if causal else None

        def step(x, ids):
            hidden = padded(ids)
            y, _ = model(x, x, x, hidden, need_weights=False, attn_mask=added)
            loss = (y**2).mean()
            rule.step(0.1, model, loss.backward())
            return loss

        call = burnish.compile(step) if planned else step
        found = []
        for seed in range(3):
            random = np.random.default_rng(seed)
            ids = random.integers(0, 3, (4, 6))
            ids[:, 0] = 1
            x = Tensor(random.normal(size=(4, 6, 8)).astype(np.float32))
            found.append(call(x, Tensor(ids)).item())
        if planned:
            assert "nothing eagerly" in call.explain()
        return found

    np.testing.assert_allclose(run(True), run(False), rtol=1e-5)


def test_a_first_state_of_zeros_is_planned_whole():
    """A cell's state, which no input gives, goes through its weight."""
    cell, rule = nn.LSTMCell(5, 4).to("cpu:autodiff"), optim.SGD()

    def step(x):
        zeros = Tensor(np.zeros((3, 4), np.float32))
        h, c = cell(x, (zeros, zeros))
        h, c = cell(x, (h, c))
        loss = (h * c).sum()
        found = loss.backward()
        rule.step(0.0, cell, found)
        return [param.grad(found) for _, param in sorted(cell.named_parameters())]

    x = Tensor(np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32))
    fast = burnish.compile(step)
    for one, other in zip(fast(x), step(x), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), atol=1e-6)
    assert "nothing eagerly" in fast.explain()
