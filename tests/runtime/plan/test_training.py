"""A planned step of training beside the plain one, step for step."""

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops, optim
from burnish.errors import InputError
from burnish.kernels import library

pytestmark = pytest.mark.skipif(library() is None, reason="there is no compiler")


def mlp():
    return nn.Sequential(nn.Linear(20, 33), nn.ReLU(), nn.Linear(33, 5)), (8, 20)


def dropped():
    layers = nn.Linear(20, 64), nn.Dropout(0.4), nn.GELU(), nn.Linear(64, 5)
    return nn.Sequential(*layers), (8, 20)


class Block(nn.Module):
    def __init__(self, ins: int, outs: int, stride: int, groups: int = 1):
        self.conv1 = nn.Conv2d(ins, outs, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outs)
        self.conv2 = nn.Conv2d(outs, outs, 3, padding=1, groups=groups)
        self.norm2 = nn.BatchNorm2d(outs)
        self.side = nn.Conv2d(ins, outs, 1, stride=stride)

    def forward(self, x):
        y = ops.relu(self.norm1(self.conv1(x)))
        return ops.relu(self.norm2(self.conv2(y)) + self.side(x))


def residual():
    layers = (
        nn.Conv2d(3, 20, 5, stride=2, padding=2),
        nn.BatchNorm2d(20),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        Block(20, 32, 1),
        Block(32, 48, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(48, 5),
    )
    return nn.Sequential(*layers), (3, 3, 23, 19)


def depthwise():
    layers = (
        nn.Conv2d(3, 32, 3, stride=2, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU6(),
        nn.Conv2d(32, 32, 3, stride=2, padding=1, groups=32, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU6(),
        nn.Conv2d(32, 40, 1),
        Block(40, 40, 1, groups=40),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(40, 5),
    )
    return nn.Sequential(*layers), (2, 3, 17, 21)


def digits():
    layers = (
        nn.Conv2d(1, 8, 3),
        nn.Dropout(0.5),
        nn.Conv2d(8, 16, 3),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(256, 5),
    )
    return nn.Sequential(*layers), (4, 1, 28, 28)


def narrow():
    layers = (
        nn.Conv1d(4, 24, 3, padding=1, dilation=2),
        nn.ReLU(),
        nn.Conv1d(24, 24, 5, stride=3),
        nn.Flatten(),
        nn.Linear(24 * 9, 5),
    )
    return nn.Sequential(*layers), (3, 4, 33)


class Attending(nn.Module):
    """Positions that look at those before them, and at themselves."""

    def __init__(self, width: int, heads: int):
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.RMSNorm(width)
        self.qkv = [nn.Linear(width, width) for _ in range(3)]
        self.wide, self.back = nn.Linear(width, 64), nn.Linear(64, width)
        self.head = nn.Linear(width, 5)

    def forward(self, x):
        n, t, width = x.shape
        z = self.norm1(x)
        q, k, v = (
            layer(z).reshape(n, t, self.heads, -1).swapaxes(1, 2) for layer in self.qkv
        )
        y = ops.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + y.swapaxes(1, 2).reshape(n, t, width)
        x = x + self.back(ops.gelu(self.wide(self.norm2(x))))
        return self.head(ops.silu(x).mean(axis=1))


def attending():
    return Attending(48, 3), (5, 37, 48)


class Recurrent(nn.Module):
    """(N, T, 5) -> (N, 5), over one layer in both directions and a narrow one"""

    def __init__(self, hidden, layer=nn.LSTM):
        self.wide = layer(5, hidden, bidirectional=True, batch_first=True)
        self.narrow = layer(2 * hidden, 5, batch_first=True)

    def forward(self, x):
        return self.narrow(self.wide(x)[0])[0][:, -1]


def recurrent():
    return Recurrent(16), (10, 7, 5)


def gated():
    return Recurrent(16, nn.GRU), (10, 7, 5)


def simple():
    return Recurrent(16, nn.RNN), (10, 7, 5)


NETWORKS = [mlp, dropped, residual, depthwise, digits, narrow, attending, recurrent]
NETWORKS += [gated, simple]


def losses(network, planned, *, rule=None, steps=4, freeze=()):
    """The losses of some steps, and the state behind them."""
    burnish.seed(7)
    model, shape = network()
    model = model.to("cpu:autodiff")
    for path, param in model.named_parameters():
        param.freeze(any(part in path for part in freeze))
    optimizer = optim.SGD(momentum=0.9) if rule is None else rule()

    def step(x, labels, rate):
        loss = nn.cross_entropy(model(x), labels)
        optimizer.step(rate, model, loss.backward())
        return loss

    fast = burnish.compile(step) if planned else step
    rng = np.random.default_rng(1)
    found = []
    for i in range(steps):
        x = Tensor(rng.normal(size=shape).astype(np.float32))
        labels = Tensor(rng.integers(0, 5, shape[0]))
        found.append(fast(x, labels, 0.01 / (1 + i)).item())
    if planned:
        assert "one plan" in fast.explain(), fast.explain()
        assert len(fast._steps.known) == 1
    return found, {path: np.array(a) for path, a in model.state_dict().items()}


def alike(network, **options):
    plain, fast = (losses(network, planned, **options) for planned in (False, True))
    np.testing.assert_allclose(fast[0], plain[0], rtol=2e-3, atol=1e-5)
    for path, array in plain[1].items():
        scale = np.abs(array).max() + 1e-3
        np.testing.assert_allclose(
            fast[1][path], array, atol=5e-3 * scale, err_msg=path
        )


@pytest.mark.parametrize("network", NETWORKS, ids=lambda each: each.__name__)
def test_a_planned_step_is_the_plain_one(network):
    alike(network)


RULES = {
    "sgd": optim.SGD,
    "adamw": optim.AdamW,
    "clipped": lambda: optim.Adam(clip=optim.ClipGlobalNorm(0.1)),
    "rmsprop": optim.RMSprop,
    "adagrad": optim.Adagrad,
}


@pytest.mark.parametrize("rule", RULES)
def test_every_optimizer_steps_in_a_plan(rule):
    alike(mlp, rule=RULES[rule])


@pytest.mark.parametrize(
    ("network", "frozen"),
    [
        (residual, ("0.weight", "norm1")),
        (residual, ("conv",)),
        (residual, ("norm1.weight", "1.bias")),
        (attending, ("norm1.weight", "norm2.weight")),
        (gated, ("weight_hh", "bias_ih")),
        (attending, ("norm", "key", "out")),
        (attending, ("query", "linear", "value")),
        (depthwise, ("1.", "2.")),
    ],
)
def test_frozen_parameters_stay(network, frozen):
    alike(network, freeze=frozen)


def test_a_frozen_weight_is_packed_into_memory_once():
    layers = nn.Linear(16, 64), nn.Linear(64, 48), nn.Linear(48, 16)
    model = nn.Sequential(*layers)
    model[1].weight.trainable = False
    model.to("cpu:autodiff")

    @burnish.compile
    def step(x):
        loss = model(x).sum()
        optim.SGD().step(0.1, model, loss.backward())
        return loss

    step(Tensor(np.ones((4, 16), np.float32)))
    weight = model[1].weight.data
    held = step._steps.known[0]._plan.constants.values()
    large = [array for array in held if array.size >= weight.size]
    assert sum(not np.shares_memory(array, weight) for array in large) == 1


def test_the_same_bits_in_every_run():
    first, second = (losses(residual, True) for _ in range(2))
    assert first[0] == second[0]
    for path, array in first[1].items():
        np.testing.assert_array_equal(array, second[1][path])


@pytest.mark.parametrize("network", [residual, attending, recurrent])
def test_the_same_bits_for_any_number_of_threads(network):
    before, found = burnish.num_threads(), []
    try:
        for count in (1, 2, 5):
            burnish.set_num_threads(count)
            found.append(losses(network, True))
    finally:
        burnish.set_num_threads(before)
    for each in found[1:]:
        assert each[0] == found[0][0]
        for path, array in each[1].items():
            np.testing.assert_array_equal(array, found[0][1][path])


def test_a_schedule_within_the_step_continues():
    model, shape = mlp()
    model = model.to("cpu:autodiff")
    optimizer, schedule = optim.SGD(), optim.Linear(0.1, 0.0, 4)
    x, labels = Tensor(np.ones(shape, np.float32)), Tensor(np.zeros(8, np.int64))

    @burnish.compile
    def step(x, labels):
        loss = nn.cross_entropy(model(x), labels)
        optimizer.step(schedule.step(), model, loss.backward())
        return loss

    found = [step(x, labels).item() for _ in range(5)]
    assert schedule.count == 5
    assert found[3] > found[4]
    assert "one plan" in step.explain()
    before = {path: np.array(p.data) for path, p in model.named_parameters()}
    step(x, labels)  # at a rate of 0
    for path, param in model.named_parameters():
        np.testing.assert_array_equal(param.data, before[path])


def test_parameters_are_the_modules_own():
    model, shape = mlp()
    model = model.to("cpu:autodiff")
    optimizer = optim.SGD()
    x, labels = Tensor(np.ones(shape, np.float32)), Tensor(np.zeros(8, np.int64))

    @burnish.compile
    def step(x, labels):
        loss = nn.cross_entropy(model(x), labels)
        optimizer.step(0.1, model, loss.backward())
        return loss

    first = step(x, labels).item()
    kept = {path: p.data for path, p in model.named_parameters()}
    copies = {path: np.array(array) for path, array in kept.items()}
    second = step(x, labels).item()
    for path, array in kept.items():  # arrays that were read never change
        np.testing.assert_array_equal(array, copies[path])
    model.load_state_dict(copies)
    assert step(x, labels).item() == second != first


def test_what_no_plan_can_have_runs_as_it_is():
    model, shape = mlp()
    model = model.to("cpu:autodiff")
    optimizer = optim.SGD()
    x, labels = Tensor(np.ones(shape, np.float32)), Tensor(np.zeros(8, np.int64))

    @burnish.compile
    def step(x, labels):
        loss = nn.cross_entropy(model(x), labels)
        optimizer.step(0.1, model, loss.backward())
        return float(loss.data)

    first = step(x, labels)
    assert step(x, labels) < first
    assert "values of a tensor" in step.explain()


def test_a_tensor_that_is_kept_is_the_one_of_its_call():
    model, shape = mlp()
    model = model.to("cpu:autodiff")
    optimizer, kept = optim.SGD(), SimpleNamespace()
    x, labels = Tensor(np.ones(shape, np.float32)), Tensor(np.zeros(8, np.int64))

    @burnish.compile
    def step(x, labels):
        loss = nn.cross_entropy(model(x), labels)
        kept.loss = loss
        optimizer.step(0.1, model, loss.backward())
        return loss

    for _ in range(3):
        assert step(x, labels).item() == kept.loss.item()
    assert "is kept" in step.explain()


def test_a_list_that_a_step_appends_to_has_an_item_of_each_call():
    model, shape = mlp()
    model = model.to("cpu:autodiff")
    optimizer, losses, counts = optim.SGD(), [], {"steps": 0}
    x, labels = Tensor(np.ones(shape, np.float32)), Tensor(np.zeros(8, np.int64))

    @burnish.compile
    def step(x, labels):
        loss = nn.cross_entropy(model(x), labels)
        losses.append(loss)
        counts["steps"] += 1
        optimizer.step(0.1, model, loss.backward())
        return loss

    found = [step(x, labels).item() for _ in range(3)]
    assert [each.item() for each in losses] == found
    assert counts == {"steps": 3}
    assert "changes the items of 'counts'" in step.explain()


def test_an_error_of_the_step_is_the_plain_one():
    model, _ = mlp()
    model = model.to("cpu:autodiff")
    optimizer = optim.SGD()

    @burnish.compile
    def step(x):
        optimizer.step(0.1, model, model(x).sum().backward())

    before = {path: np.array(p.data) for path, p in model.named_parameters()}
    with pytest.raises(InputError, match="features"):
        step(Tensor(np.ones((2, 3), np.float32)))
    for path, param in model.named_parameters():
        np.testing.assert_array_equal(param.data, before[path])


@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize(("word", "label"), [(10, 0), (0, 3)])
def test_values_that_no_row_and_no_class_has_change_nothing(is_frozen, word, label):
    model = nn.Sequential(nn.Embedding(10, 32), nn.Flatten(), nn.Linear(64, 3))
    if is_frozen:
        model[0].freeze()
    model = model.to("cpu:autodiff")
    optimizer, schedule = optim.AdamW(), optim.Linear(0.1, 0.0, 9)

    @burnish.compile
    def step(words, labels):
        loss = nn.cross_entropy(model(words), labels)
        optimizer.step(schedule.step(), model, loss.backward())
        return loss

    words, labels = np.arange(8).reshape(4, 2), np.arange(4) % 3
    for _ in range(2):
        step(Tensor(words), Tensor(labels))
    assert "one plan" in step.explain()
    before = {path: np.array(a) for path, a in model.state_dict().items()}
    words[1, 1] += word
    labels[0] += label
    with pytest.raises(InputError, match=r"expected (ids|classes) from 0 to"):
        step(Tensor(words), Tensor(labels))
    for path, array in model.state_dict().items():
        np.testing.assert_array_equal(array, before[path])
    assert schedule.count == 2


def test_a_parameter_is_read_as_the_update_before_left_it():
    def run(planned):
        burnish.seed(3)
        maker = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 16))
        critic = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
        maker, critic = (each.to("cpu:autodiff") for each in (maker, critic))
        first, second = optim.SGD(momentum=0.9), optim.Adam()

        def step(real, noise, rate):
            made = maker(noise)
            loss = critic(made.detach()).mean() - critic(real).mean()
            first.step(rate, critic, loss.backward())
            other = -critic(made).mean()
            second.step(rate, maker, other.backward())
            return loss, other

        fast = burnish.compile(step) if planned else step
        rng, found = np.random.default_rng(2), []
        for _ in range(4):
            real, noise = rng.normal(size=(8, 16)), rng.normal(size=(8, 4))
            given = (Tensor(each.astype(np.float32)) for each in (real, noise))
            found += [each.item() for each in fast(*given, 0.05)]
        if planned:
            assert "one plan" in fast.explain(), fast.explain()
            assert "float32" not in fast.explain(), fast.explain()
        return found

    np.testing.assert_allclose(run(True), run(False), rtol=1e-4, atol=1e-5)


def test_a_capture_keeps_no_gradient_longer_than_it_is_read():
    """The first call computes with values: of the forward pass, and few beside them."""
    layers, size = 24, 1 << 20
    model, optimizer = nn.Linear(1024, 1024, bias=False), optim.SGD()
    model = model.to("cpu:autodiff")

    @burnish.compile
    def step(x):
        x = model(x)
        for _ in range(layers):
            x = ops.tanh(x)
        optimizer.step(0.1, model, x.sum().backward())

    x = Tensor(np.ones((size // 4096, 1024), np.float32))
    model(x)
    tracemalloc.start()
    try:
        step(x)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "one plan" in step.explain()
    assert most < 1.6 * layers * size
