"""Networks whose nodes run once for each sample of a batch, and as they are."""

from __future__ import annotations

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops
from burnish.plan.cpu.samples import chosen as by_sample
from tests.runtime.plan.checks import check

RANDOM = np.random.default_rng(7)


def tensor(*shape):
    return Tensor(RANDOM.standard_normal(shape).astype(np.float32))


def repeated(fast, *args):
    """How many records of a plan are those of samples after the first."""
    return sum(step.of is not None for step in fast.planned(*args).steps)


class Residual(nn.Module):
    """Convolutions of all kinds, a sum, a gate of each channel, and classes."""

    def __init__(self, width):
        self.stem = nn.Conv2d(3, width, 3, 2, padding=1)
        self.each = nn.Conv2d(width, width, 3, padding=1, groups=width)
        self.last = nn.Conv2d(width, width, 1)
        self.gate = nn.Conv2d(width, width, 1)
        self.head = nn.Linear(width, 5)

    def forward(self, x):
        y = ops.relu(self.stem(x))
        z = ops.relu6(self.each(y))
        z = z * ops.sigmoid(self.gate(z.mean(axis=(2, 3), keepdims=True)))
        y = ops.silu(y + self.last(z))
        y = ops.max_pool(y, kernel_size=3, stride=2, padding=1)
        return self.head(y.mean(axis=(2, 3)))


class Gated(nn.Module):
    """A gate of each channel before a 1 x 1 convolution, a sum and an activation."""

    def __init__(self, width, outs):
        self.each = nn.Conv2d(width, width, 3, padding=1, groups=width)
        self.gate = nn.Conv2d(width, width, 1)
        self.last = nn.Conv2d(width, outs, 1)
        self.beside = nn.Conv2d(width, outs, 1, bias=False)

    def forward(self, x):
        y = self.each(x)
        gate = ops.sigmoid(self.gate(y.mean(axis=(2, 3), keepdims=True)))
        return ops.silu(self.last(y * gate) + self.beside(x)), self.last(gate * y)


class Pyramid(nn.Module):
    """Down, up again, and a skip; several results, the input read twice."""

    def __init__(self):
        self.down = nn.Conv2d(16, 24, 2, 2)
        self.up = nn.ConvTranspose2d(24, 16, 2, 2)
        self.norm = nn.GroupNorm(4, 24)
        self.join = nn.Conv2d(32, 16, 3, padding=1)

    def forward(self, x):
        low = self.norm(self.down(x))
        high = ops.concat([x, self.up(low)], axis=1)
        a, b = ops.split(ops.relu(self.join(high)), (7, 9), axis=1)
        return a, b * 2.0, low.softmax(axis=1), x.reshape(len(x), 4, -1)[:, 1:3]


def signals(x):
    """Other views, padding and norms; values in no blocks."""
    y = ops.pad(x.transpose((0, 2, 1)), ((0, 0), (1, 2), (0, 0)))
    y = ops.layer_norm(y, y.shape[-1:])
    return y.sum(axis=1), ops.exp(y[:, ::2]).max(axis=-1, keepdims=True)


CASES = {
    "residual": (Residual(24), (3, 3, 20, 17)),
    "blocks that are whole": (Residual(32), (2, 3, 16, 16)),
    "gated": (Gated(24, 20), (3, 24, 15, 14)),
    "gated, whole blocks": (Gated(32, 64), (2, 32, 17, 16)),
    "gated, less than a block": (Gated(5, 3), (2, 5, 17, 16)),
    "pyramid": (Pyramid(), (4, 16, 10, 12)),
    "signals": (signals, (5, 6, 11)),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_samples_one_by_one_give_the_same(name, threads, monkeypatch):
    monkeypatch.setattr(by_sample, "_gain", lambda node, batch: 1.0)
    function, shape = CASES[name]
    x, before = tensor(*shape), burnish.num_threads()
    burnish.set_num_threads(threads)
    try:
        fast = check(function, x)
        steps = fast.planned(x).steps
        whole = repeated(check(function, x, off=("sample_loops",)), x)
    finally:
        burnish.set_num_threads(before)
    assert whole == 0
    assert repeated(fast, x) == len(steps) * (shape[0] - 1) // shape[0] > 0
    assert "eagerly" not in fast.explain()


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(("width", "outs"), [(24, 20), (32, 64), (5, 3), (48, 96)])
def test_gates_are_in_weights(width, outs, batch):
    """Of one sample; those of a batch are multiplied before."""
    model, x = Gated(width, outs), tensor(batch, width, 23, 20)
    fast = check(model, x)
    sizes = [
        step.fields["out"].buffer.size
        for step in fast.planned(x).steps
        if step.kind == "program"
    ]
    assert (max(sizes, default=0) >= 4 * x.size) == (batch > 1)
    check(model, x, off=("gated_conv",))
    x.data[0, 0, 0, 0] = np.nan
    x.data[-1, -1, -1, -1] = np.inf
    with np.errstate(invalid="ignore"):
        check(model, x)


@pytest.mark.usefixtures("canaries")
@pytest.mark.parametrize("name", CASES)
def test_no_sample_writes_beside_its_place(name, monkeypatch):
    monkeypatch.setattr(by_sample, "_gain", lambda node, batch: 1.0)
    function, shape = CASES[name]
    check(function, tensor(*shape))


def test_a_stretch_between_nodes_of_the_whole_batch(monkeypatch):
    """A value in blocks goes in, another one comes out, and both are read later."""
    monkeypatch.setattr(by_sample, "_gain", lambda node, batch: 1.0)
    first, second = nn.Conv2d(16, 20, 3), nn.Conv2d(20, 20, 3, padding=1)

    def function(x):
        y = first(x)
        a = second(ops.flip(y, axis=0))  # a sample of another one: for the batch
        b = ops.relu(second(a)) + a
        return ops.flip(b, axis=0) + y

    x = tensor(3, 16, 9, 8)
    fast = check(function, x)
    assert 0 < repeated(fast, x) < len(fast.planned(x).steps)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.mean(axis=0, keepdims=True) + x,
        lambda x: ops.softmax(x, axis=0),
        lambda x: ops.concat([x, x], axis=0),
        lambda x: x[1:],
        lambda x: x.reshape(2, -1),
        lambda x: x.transpose((1, 0, 2, 3)) * 2.0,
        lambda x: ops.pad(x, ((1, 0), (0, 0), (0, 0), (0, 0))),
        lambda x: x + np.arange(4, dtype=np.float32).reshape(4, 1, 1, 1),
        lambda x: x.sum(),
        lambda x: x[0] + x,
    ],
)
def test_what_goes_across_samples_is_for_the_batch(function, monkeypatch):
    monkeypatch.setattr(by_sample, "_gain", lambda node, batch: 1.0)
    check(function, tensor(4, 4, 3, 5))


def test_only_large_maps_are_worth_it():
    layer = nn.Conv2d(16, 16, 3, padding=1)
    model = nn.Sequential(layer, nn.ReLU(), layer, nn.ReLU())
    small, large = tensor(4, 16, 12, 12), tensor(4, 16, 200, 200)
    fast = burnish.compile(model)
    assert repeated(fast, small) == 0
    assert repeated(fast, large) > 0
    assert "4 x conv" in fast.plan(large)


def test_maps_of_a_batch_are_not_in_memory_at_once():
    layer = nn.Conv2d(16, 16, 3, padding=1)
    model = nn.Sequential(*[each for _ in range(3) for each in (layer, nn.ReLU())])
    x = tensor(8, 16, 128, 128)
    whole, parts = (burnish.compile(model, off=o) for o in (("sample_loops",), ()))
    assert parts.planned(x).memory.arena * 4 < whole.planned(x).memory.arena
