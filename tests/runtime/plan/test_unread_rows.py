"""Rows and queries that nobody reads are not computed, nor their gradients."""

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


class Attention(nn.Module):
    """Rows of attention over (3, 8, 16), behind a layer and before one."""

    def __init__(self, of, index=INDEXES["first"]):
        self.of, self.index = of, index
        self.query, self.key, self.value = (nn.Linear(16, 16) for _ in range(3))
        self.before, self.out = nn.Linear(16, 16), nn.Linear(16, 16)
        self.encoder = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)
        self.dropping = nn.TransformerEncoderLayer(16, 2, 32, 0.5, batch_first=True)

    def heads(self, x):
        layers = self.query, self.key, self.value
        return [layer(x).reshape(3, 8, 2, 8).swapaxes(1, 2) for layer in layers]

    def scores(self, x):
        q, k, v = self.heads(x)
        return q @ k.swapaxes(2, 3), v

    def joined(self, y):
        return self.out(y.swapaxes(1, 2).reshape(3, 8, 16))

    def forward(self, x):
        return self.of(self, self.before(x))[self.index]


SHIFT = RANDOM.standard_normal((8, 8)).astype(np.float32)
ATTENTIONS = {
    "plain": lambda m, x: x + m.joined(ops.scaled_dot_product_attention(*m.heads(x))),
    "causal": lambda m, x: (
        x + m.joined(ops.scaled_dot_product_attention(*m.heads(x), is_causal=True))
    ),
    "scores of keys are shifted": lambda m, x: m.joined(
        ops.softmax((s := m.scores(x))[0] + Tensor(SHIFT[:1])) @ s[1]
    ),
    "a layer": lambda m, x: m.encoder(x),
    "a layer with dropout": lambda m, x: m.dropping(x),
}


@pytest.mark.parametrize("index", ["first", "last", "two", "every third"])
@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_is_of_the_queries_that_are_read(name, index):
    model, x = Attention(ATTENTIONS[name], INDEXES[index]), inputs()
    plain = burnish.compile(model.valid(), off=("unread_rows",))
    assert work(check(model, x), x) < 0.85 * work(plain, x)
    made, wanted, fast = both_steps(model.train().to("cpu:autodiff"), x)
    same(made, wanted)
    assert "planning failed" not in fast.explain()


OTHER_ATTENTIONS = {
    "over queries": lambda m, x: m.joined(
        ops.softmax((s := m.scores(x))[0], axis=2) @ s[1]
    ),
    "queries are keys": lambda m, x: m.joined(
        ops.softmax((q := m.heads(x)[0]) @ q.swapaxes(2, 3)) @ q
    ),
    "values are scores": lambda m, x: m.joined(
        (s := ops.softmax(m.scores(x)[0])) @ s @ m.heads(x)[2]
    ),
    "all scores are read": lambda m, x: m.joined(
        (s := m.scores(x))[0] @ s[1] + s[0].mean()
    ),
    "scores are shifted by an array": lambda m, x: m.joined(
        ops.softmax((s := m.scores(x))[0] + SHIFT) @ s[1]
    ),
    "words are mixed": lambda m, x: m.out(x.reshape(3, 16, 8).swapaxes(1, 2)),
    "the batch is split": lambda m, x: m.out(x.reshape(3, 2, 4, 16)).reshape(3, 8, 16),
}


@pytest.mark.parametrize("name", OTHER_ATTENTIONS)
def test_queries_that_are_read_otherwise_are_computed(name):
    model, x = Attention(OTHER_ATTENTIONS[name]), inputs()
    check(model.valid(), x)
    made, wanted, fast = both_steps(model.train().to("cpu:autodiff"), x)
    same(made, wanted)
    assert "planning failed" not in fast.explain()


@pytest.mark.oracle
def test_gradients_of_queries_are_those_of_pytorch():
    import torch

    torch.manual_seed(0)
    theirs = torch.nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)
    model = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)
    model.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    x = inputs()
    theirs.double()(torch.from_numpy(x.data).double())[:, -1].pow(3).mean().backward()
    model.to("cpu:autodiff")
    sgd, before = optim.SGD(), {k: v.copy() for k, v in _arrays(model)}

    def step(x):
        made = model(x)[:, -1]
        loss = (made * made * made).mean()
        sgd.step(1.0, model, loss.backward())
        return loss

    burnish.compile(step)(x)
    wanted = {k: p.grad.numpy() for k, p in theirs.named_parameters()}
    scale = max(abs(grad).max() for grad in wanted.values())
    for name, after in _arrays(model):
        found = before[name] - after
        np.testing.assert_allclose(found, wanted[name], atol=1e-5 * scale, rtol=0)


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
