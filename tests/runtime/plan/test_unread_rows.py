"""Rows that nobody reads are not computed, nor their gradients."""

import copy

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops, optim
from burnish.ops.normalization import layer_norm_from
from tests.runtime.plan.checks import check, same

RANDOM = np.random.default_rng(3)
INDEXES = {
    "first": (slice(None), 0),
    "last": (slice(None), -1),
    "two": (slice(None), slice(2, 4)),
    "of one sample": (1,),
    "every third": (slice(None), slice(None, None, 3)),
}


class Block(nn.Module):
    """Layers of rows behind ones that mix them; gives some rows."""

    def __init__(self, index, norm=nn.LayerNorm, rate=0.0, rank=0, frozen=False):
        self.index, self.rank = index, rank
        self.mix = nn.Linear(8, 8)
        self.before = nn.Linear(16, 16)
        self.norm, self.last_norm = norm(16), norm(16)
        self.wide, self.narrow = nn.Linear(16, 32), nn.Linear(32, 16)
        self.dropout = nn.Dropout(rate)
        self.down, self.up = nn.Linear(16, 2), nn.Linear(2, 16)
        self.head = nn.Linear(16, 3)
        for param in [*self.mix.parameters(), *self.before.parameters()]:
            param.trainable = not frozen

    def rows(self, x):
        x = self.before(self.mix(x.swapaxes(1, 2)).swapaxes(1, 2))
        y = self.narrow(self.dropout(ops.gelu(self.wide(self.norm(x)))))
        if self.rank:
            y = y + self.up(self.down(x)) * 2.0
        return self.last_norm(x + self.dropout(y))

    def forward(self, x):
        return self.head(self.rows(x)[self.index])


def inputs():
    return Tensor(RANDOM.standard_normal((3, 8, 16)).astype(np.float32))


def both_steps(model, x, loss=lambda y: (y * y).mean()):
    """The parameters behind two steps, as planned and as they are; the planned one."""

    def steps(model, is_planned):
        sgd = optim.SGD()

        def step(x):
            made = loss(model(x))
            sgd.step(0.1, model, made.backward())
            return made

        run = burnish.compile(step) if is_planned else step
        burnish.seed(1)
        losses = [run(x), run(x)]
        return (losses, model.state_dict()), run

    other = copy.deepcopy(model)
    wanted, _ = steps(other, is_planned=False)
    made, run = steps(model, is_planned=True)
    return made, wanted, run


def work(fast, x):
    return sum(step.flops for step in fast.planned(x).steps)


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_rows_alone_are_computed(index):
    model = Block(index).valid()
    x = inputs()
    fast = check(model, x)
    plain = burnish.compile(model, off=("unread_rows",))
    assert work(fast, x) < 0.75 * work(plain, x)


@pytest.mark.parametrize(
    "options",
    [
        {"index": INDEXES["first"]},
        {"index": INDEXES["two"], "norm": nn.RMSNorm},
        {"index": INDEXES["of one sample"], "rate": 0.5},
        {"index": INDEXES["last"], "rank": 2},
        {"index": INDEXES["every third"], "frozen": True},
    ],
    ids=["first", "RMS norm", "dropout", "adapters", "frozen"],
)
def test_steps_are_those_of_all_rows(options):
    model = Block(**options).to("cpu:autodiff")
    made, wanted, fast = both_steps(model, inputs())
    same(made, wanted)
    assert "nothing eagerly" in fast.explain()


class Read(nn.Module):
    """Rows that are read in another way too, or of what is no row of its own."""

    def __init__(self, of):
        self.of, self.first, self.second = of, nn.Linear(16, 16), nn.Linear(16, 4)
        self.scale = nn.Param(RANDOM.standard_normal((8, 4)).astype(np.float32))

    def forward(self, x):
        return self.of(self, x)


TABLE = RANDOM.standard_normal((8, 16)).astype(np.float32)
OTHERS = {
    "all rows as well": lambda m, x: ((y := m.second(m.first(x)))[:, 0] + y.mean(1),),
    "two kinds of rows": lambda m, x: (y := m.second(m.first(x)))[:, 0] + y[:, 1],
    "two kinds of rows of what both read": lambda m, x: (
        m.second(z := ops.softmax(m.first(x), axis=1))[:, 0] * m.second(z)[:, 1]
    ),
    "the same rows twice": lambda m, x: (y := m.second(m.first(x)))[:, 0] * y[:, 0],
    "most rows": lambda m, x: m.second(m.first(x))[:, 1:],
    "columns": lambda m, x: m.second(m.first(x))[..., 0],
    "over rows": lambda m, x: ops.softmax(m.second(m.first(x)), axis=1)[:, 0],
    "other rows inside": lambda m, x: m.second(m.first(x)[:, :2])[:, 0],
    "columns of a matrix": lambda m, x: (m.second(x) @ m.second.weight)[:, 0],
    "of broadcast sums": lambda m, x: (m.first(x) + m.first(x)[:, :1])[:, 0],
    "an array of NumPy": lambda m, x: m.second(m.first(x) + TABLE)[:, 0],
    "an array of NumPy first": lambda m, x: ops.sub(TABLE, m.first(x))[:, 1:3],
    "a norm with weights of rows": lambda m, x: layer_norm_from(
        m.second(m.first(x)), m.scale
    )[:, 3],
    "a table of rows": lambda m, x: (m.first(x) + m.first.weight[:8])[:, 2],
}


@pytest.mark.parametrize("name", OTHERS)
def test_rows_that_are_read_otherwise_are_computed(name):
    def loss(made):
        return sum(
            (y * y).mean() for y in (made if isinstance(made, tuple) else (made,))
        )

    model, x = Read(OTHERS[name]), inputs()
    check(model, x)
    made, wanted, fast = both_steps(model.to("cpu:autodiff"), x, loss)
    same(made, wanted)
    assert "planning failed" not in fast.explain()


def test_results_see_nothing_of_rows_that_are_not_read():
    model = Read(lambda m, x: ops.gelu(m.second(ops.gelu(m.first(x))))[:, 0])
    x = inputs()
    x.data[:, 1] = np.nan
    check(model, x)


@pytest.mark.oracle
def test_gradients_are_those_of_pytorch():
    import torch

    torch.manual_seed(0)
    layers = torch.nn.Sequential(
        torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 16)
    ).double()
    norm = torch.nn.LayerNorm(16).double()
    x = inputs()
    data = torch.from_numpy(x.data).double()
    norm(data + layers(data))[:, -1].pow(3).mean().backward()

    class Model(nn.Module):
        def __init__(self):
            self.layers = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
            self.norm = nn.LayerNorm(16)

        def forward(self, x):
            return self.norm(x + self.layers(x))[:, -1]

    model = Model()
    state = {f"layers.{k}": v for k, v in layers.state_dict().items()}
    state |= {f"norm.{k}": v for k, v in norm.state_dict().items()}
    model.load_state_dict({k: v.float().numpy() for k, v in state.items()})
    model.to("cpu:autodiff")
    sgd, before = optim.SGD(), {k: v.copy() for k, v in _arrays(model)}

    def step(x):
        made = model(x)
        loss = (made * made * made).mean()
        sgd.step(1.0, model, loss.backward())
        return loss

    burnish.compile(step)(x)
    wanted = {f"layers.{k}": p.grad for k, p in layers.named_parameters()}
    wanted |= {f"norm.{k}": p.grad for k, p in norm.named_parameters()}
    for name, after in _arrays(model):
        found, grad = before[name] - after, wanted[name].numpy()
        np.testing.assert_allclose(found, grad, atol=1e-5 * abs(grad).max(), rtol=0)


def _arrays(model):
    return [(k, np.asarray(p.data)) for k, p in model.named_parameters()]
