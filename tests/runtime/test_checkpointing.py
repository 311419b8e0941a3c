"""Checkpointing: the same gradients to the last bit, from less memory."""

import tracemalloc

import numpy as np
import pytest

import burnish
from burnish import Device, Tensor, nn, ops, optim
from burnish.autodiff import Node, no_grad
from burnish.checkpointing import Thin, checkpoint
from burnish.errors import DeviceError
from burnish.models.mnist.mnist import Model as Mnist
from burnish.operator import memory_bound, operator

X = np.random.default_rng(0).normal(size=(6, 8))


class Block(nn.Module):
    """Everything that is special: dropout, running statistics, a residual path."""

    def __init__(self, size=8):
        self.norm = nn.BatchNorm1d(size, dtype="float64")
        self.fc1 = nn.Linear(size, 2 * size, dtype="float64")
        self.fc2 = nn.Linear(2 * size, size, dtype="float64")
        self.drop = nn.Dropout(0.3)

    def forward(self, x):
        return x + self.drop(self.fc2(ops.gelu(self.fc1(self.norm(x)))))


class Deep(nn.Module):
    def __init__(self, depth=3, checkpointed=False, size=8):
        self.blocks = [Block(size) for _ in range(depth)]
        self.checkpointed = checkpointed

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x) if self.checkpointed else block(x)
        return x


def gradients(device="cpu:autodiff", checkpointed=False, x=X, create_graph=False):
    burnish.seed(0)
    net = Deep(checkpointed=checkpointed).to(device)
    x = Tensor(x, device=device).require_grad()
    burnish.seed(1)
    loss = (net(x) ** 2).sum()
    found = loss.backward(create_graph=create_graph)
    after = [Tensor.rand(3).numpy()]  # the source of random numbers goes on alike
    every = [x, *net.parameters()]
    if create_graph:
        second = (every[0].grad(found) ** 2).sum().backward()
        return [t.grad(second).numpy() for t in every if t.grad(second) is not None]
    statistics = [buffer.numpy() for _, buffer in net.named_buffers()]
    return [t.grad(found).numpy() for t in every] + statistics + after


WAYS = {
    "balanced": {"device": "cpu:autodiff:balanced"},
    "blocks": {"checkpointed": True},
    "both": {"device": "cpu:autodiff:balanced", "checkpointed": True},
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_gradients_are_the_same_to_the_last_bit(way, create_graph):
    expected = gradients(create_graph=create_graph)
    got = gradients(**way, create_graph=create_graph)
    assert len(got) == len(expected) > 10
    for one, other in zip(got, expected, strict=True):
        if create_graph:  # sums of second derivatives come in another order
            np.testing.assert_allclose(one, other, 1e-9, 1e-12)
        else:
            assert one.tobytes() == other.tobytes()


def test_a_generated_model_trains_alike():
    def losses(device):
        burnish.seed(0)
        model, optimizer = Mnist.from_file().to(device), optim.Adam()
        x = np.random.default_rng(0).random((4, 28, 28), np.float32)
        for _ in range(3):
            loss = nn.cross_entropy(model(x), [1, 2, 3, 4])
            optimizer.step(1e-3, model, loss.backward())
            yield loss.item()

    assert list(losses("cpu:autodiff:balanced")) == list(losses("cpu:autodiff"))


def peak(device, checkpointed=False, depth=24):
    net = Deep(depth, checkpointed, size=16).to(device)
    x = Tensor(np.ones((2000, 16)), device=device)
    net(x[:2])  # weights are made
    tracemalloc.start()
    try:
        net(x).sum().backward()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_deep_network_takes_less_memory():
    everything = peak("cpu:autodiff")
    assert peak("cpu:autodiff:balanced") < 0.7 * everything
    assert peak("cpu:autodiff", checkpointed=True) < 0.35 * everything


def test_products_are_kept_and_elementwise_results_are_not():
    w = Tensor(np.ones((3, 3)), device="cpu:autodiff:balanced").require_grad()
    product = ops.relu(w) @ w
    y = ops.exp(ops.sin(product))
    node = y.node
    assert isinstance(node, Thin)
    assert node.values is None
    assert node.args == (None,)
    assert product.node.values is product.data
    assert product.node.args[0] is None
    assert product.node.args[1] is w.data
    assert type((Tensor([1.0]).require_grad() * 2).node) is Node


def test_long_chains_are_kept_at_intervals():
    x = Tensor([1.0], device="cpu:autodiff:balanced").require_grad()
    y, held = x, []
    for _ in range(40):
        y = y + 1
        held.append(y.node.held)
    assert 0 < sum(held) < 10
    assert x.grad((y * y).sum().backward()).item() == 82


def test_users_say_that_their_operator_is_cheap():
    @memory_bound
    @operator
    def thrice(x):
        return 3 * x

    @thrice.vjp
    def _(g, y, x):
        return thrice(g)

    x = Tensor([2.0], device="cpu:autodiff:balanced").require_grad()
    y = thrice(x)
    assert y.node.values is None
    assert x.grad((y * y).sum().backward()).item() == 36


def test_what_a_function_takes_and_gives_may_be_of_any_form():
    w = Tensor([2.0, 3.0]).require_grad()
    frozen = Tensor([5.0])

    def several(pair, *, scale):
        a, b = pair
        return {"sum": (a + b) * w * scale, "rest": [a * 1, (b > 0), frozen]}

    a, b = Tensor([1.0, 1.0]).require_grad(), Tensor([4.0, -1.0]).require_grad()
    made = checkpoint(several, (a, b), scale=2)
    assert not made["rest"][1].requires_grad
    found = (made["sum"] * made["rest"][0]).sum().backward()
    plain = several((a, b), scale=2)
    expected = (plain["sum"] * plain["rest"][0]).sum().backward()
    for tensor in (a, b, w):
        assert tensor.grad(found).tolist() == tensor.grad(expected).tolist()
    assert not frozen.requires_grad


def test_nested_functions_and_one_that_gives_its_argument():
    x = Tensor([0.5]).require_grad()
    y = checkpoint(lambda a: checkpoint(ops.sin, a) * a, x)
    expected = np.cos(0.5) * 0.5 + np.sin(0.5)
    assert x.grad(y.sum().backward()).item() == pytest.approx(expected)
    assert checkpoint(lambda a: a, x) is x


def test_a_failing_function_leaves_everything_as_it_was():
    x = Tensor([1.0]).require_grad()
    calls = []

    def fails_again(a):
        calls.append(1)
        if len(calls) > 1:
            raise RuntimeError("second call")
        return a * 2

    y = checkpoint(fails_again, x)
    with pytest.raises(RuntimeError, match="second call"):
        y.sum().backward()
    assert (x * 2).requires_grad


def test_nothing_is_recorded_without_gradients():
    x = Tensor([1.0]).require_grad()
    with no_grad():
        assert not (x * 2).requires_grad
        assert not checkpoint(ops.sin, x).requires_grad
    assert (x * 2).requires_grad


def test_the_device_says_how():
    balanced = Device("cuda:1").autodiff("balanced")
    assert str(balanced) == "cuda:1:autodiff:balanced"
    assert Device(str(balanced)) is balanced
    assert balanced.autodiff() is balanced
    assert balanced.autodiff("none") is Device("cuda:1:autodiff")
    assert balanced.inner() is Device("cuda:1")
    model = nn.Linear(2, 2).to("cpu:autodiff:balanced")
    assert model(np.ones((1, 2), np.float32)).device.is_balanced
    assert model.train().device.is_balanced
    mixed = Tensor([1.0], device="cpu:autodiff") + Tensor([1.0], device=model.device)
    assert mixed.device is model.device
    with pytest.raises(DeviceError, match="'none' or 'balanced', got 'all'"):
        balanced.autodiff("all")
