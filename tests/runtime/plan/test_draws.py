"""Random numbers within plans: drawn anew in each run, as the plain call draws them."""

import threading

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops, optim, rng
from burnish.backend import Device
from burnish.backend.philox import drawn_mask
from burnish.distributions import Bernoulli, Uniform
from burnish.draws import keep_mask

CPU = Device("cpu")


class DropPath(nn.Module):
    """Stochastic depth: a residual branch is left out for whole examples."""

    def __init__(self, branch, p):
        self.branch, self.p = branch, p

    def forward(self, x):
        if not self.training:
            return x + self.branch(x)
        shape = x.shape[0], *(1,) * (len(x.shape) - 1)
        kept = Tensor.random(shape, Bernoulli(1 - self.p), device=x.device)
        return x + self.branch(x) * kept / (1 - self.p)


class Coder(nn.Module):
    """A variational autoencoder's noise, and others of every kind."""

    def __init__(self):
        self.inner, self.outer = nn.Linear(20, 12), nn.Linear(6, 5)

    def forward(self, x):
        mean, scale = ops.split(self.inner(x), num=2, axis=-1)
        z = mean + Tensor.randn(*mean.shape, device=x.device) * ops.exp(scale)
        z = z * Tensor.random(z.shape, Uniform(0.5, 1.5), device=x.device)
        return self.outer(z + z.random_like(Bernoulli(0.5)))


class Sequence(nn.Module):
    def __init__(self, layer):
        self.layer, self.head = layer, nn.Linear(16, 5)

    def forward(self, x):
        y = self.layer(x)
        y = y[0] if isinstance(y, tuple) else y
        return self.head(y.mean(axis=1))


def vectors(layer):
    return lambda: nn.Sequential(nn.Linear(20, 36), layer(), nn.Linear(36, 5))


def maps(layer, rank):
    conv, pool = getattr(nn, f"Conv{rank}d"), getattr(nn, f"AdaptiveAvgPool{rank}d")

    def made():
        last = pool(1), nn.Flatten(), nn.Linear(32, 5)
        return nn.Sequential(conv(3, 20, 3), layer(), conv(20, 32, 2), layer(), *last)

    return made


def encoder(**setting):
    return Sequence(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, **setting))


NETWORKS = {
    "dropout": (vectors(lambda: nn.Dropout(0.4)), (8, 20)),
    "everything": (vectors(lambda: nn.Dropout(1.0)), (8, 20)),
    "alpha": (vectors(lambda: nn.AlphaDropout(0.3)), (8, 20)),
    "noise": (vectors(lambda: nn.GaussianNoise(0.3)), (8, 20)),
    "maps": (maps(lambda: nn.Dropout(0.2), 2), (3, 3, 9, 7)),
    "channels": (maps(lambda: nn.Dropout2d(0.4), 2), (3, 3, 9, 7)),
    "channels of lines": (maps(lambda: nn.Dropout1d(0.4), 1), (3, 3, 9)),
    "channels of volumes": (maps(lambda: nn.Dropout3d(0.4), 3), (2, 3, 5, 6, 7)),
    "feature alpha": (maps(lambda: nn.FeatureAlphaDropout(0.4), 2), (3, 3, 9, 7)),
    "attention": (lambda: encoder(dropout=0.3), (4, 9, 16)),
    "long attention": (lambda: encoder(dropout=0.3), (1, 513, 16)),
    "norm first": (lambda: encoder(dropout=0.1, norm_first=True), (4, 9, 16)),
    "lstm": (
        lambda: Sequence(nn.LSTM(16, 16, 2, dropout=0.3, batch_first=True)),
        (4, 9, 16),
    ),
    "drop path": (
        lambda: nn.Sequential(DropPath(nn.Linear(20, 20), 0.4), nn.Linear(20, 5)),
        (8, 20),
    ),
    "coder": (Coder, (8, 20)),
}


def trained(name, compiled, steps=4):
    """Losses, and what the source gives next; where compiled, what ran eagerly."""
    make, shape = NETWORKS[name]
    burnish.seed(3)
    net = make()
    data = np.random.default_rng(0)
    x, y = Tensor(data.normal(size=shape).astype("f")), Tensor(np.arange(shape[0]) % 5)
    net(x)  # lazy layers are made
    net, adam = net.to("cpu:autodiff"), optim.Adam()

    def step(x, y):
        loss = nn.cross_entropy(net(x), y)
        adam.step(1e-2, net, loss.backward())
        return loss

    call = burnish.compile(step) if compiled else step
    losses = [call(x, y).item() for _ in range(steps)]
    told = call.explain() if compiled else ""
    return losses, rng.generator().integers(1 << 40), told


@pytest.mark.parametrize("name", NETWORKS)
def test_steps_draw_as_the_plain_step_does(name):
    expected, behind, _ = trained(name, False)
    losses, after, told = trained(name, True)
    assert losses == pytest.approx(expected, rel=1e-4)
    assert after == behind
    for word in ("keep_mask", "dropped", "random", "normal", "uniform", "gradient"):
        assert word not in told


@pytest.mark.parametrize("name", ["dropout", "attention", "long attention"])
def test_losses_are_the_same_for_any_number_of_threads(name):
    found = []
    for threads in (1, 2, 5):
        burnish.set_num_threads(threads)
        try:
            found.append(trained(name, True)[0])
        finally:
            burnish.set_num_threads(None)
    assert found[0] == found[1] == found[2]


def alone(x):
    return ops.dropout(x, 0.3)


def turned(x):
    return ops.dropout(x.swapaxes(0, -1), 0.3) * 2


def biased(x):
    return ops.dropout(x, 0.3) + x[..., :1]


def cut(x):
    return ops.dropout(ops.exp(x), 0.3)[1:]


SHAPES = [(1,), (3,), (5, 7), (4, 9, 16), (4, 9, 20), (3, 1025), (2, 5, 64, 3),
          (2, 2, 2, 2, 2, 6)]  # fmt: skip


def check(function, *given):
    """A plan gives the plain call's numbers, with the same draws."""
    burnish.seed(7)
    expected = function(*given).numpy()
    fast = burnish.compile(function)
    burnish.seed(7)
    assert fast(*given).numpy() == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert not {"keep_mask", "dropped", "where"} & {*fast.explain().split()}


@pytest.mark.usefixtures("canaries")
@pytest.mark.parametrize("function", [alone, turned, biased, cut])
@pytest.mark.parametrize("shape", SHAPES)
def test_masks_lie_as_what_they_multiply(function, shape):
    x = Tensor(np.random.default_rng(0).normal(size=shape).astype("f"))
    check(function, x)


@pytest.mark.usefixtures("canaries")
@pytest.mark.parametrize("channels", [5, 16, 20, 48, 64])
def test_masks_of_blocks(channels):
    first, last = nn.Linear(12, channels), nn.Linear(channels, channels)
    conv, point = nn.Conv2d(3, channels, 3), nn.Conv2d(channels, channels, 1)

    def words(x):
        y = first(x)
        return last(ops.dropout(ops.gelu(y), 0.3) + y)

    def maps(x, axes):
        y = conv(x)
        kept = keep_mask((*y.shape[:2], *y.shape[2:][:axes], *(1, 1)[axes:]), 0.6, CPU)
        return point(ops.where(kept, ops.relu(y), 0)) + kept.sum()

    data = np.random.default_rng(0)
    check(words, Tensor(data.normal(size=(3, 10, 12)).astype("f")))
    image = Tensor(data.normal(size=(2, 3, 9, 8)).astype("f"))
    for axes in (0, 2):
        check(lambda x, axes=axes: maps(x, axes), image)


def test_a_mask_of_a_step_is_nowhere_in_memory():
    """Dropout behind an activation is one pass, and what is kept is its input alone."""
    net = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Dropout(0.5), nn.Linear(64, 5))
    net, adam = net.to("cpu:autodiff"), optim.Adam()

    def step(x, y):
        loss = nn.cross_entropy(net(x), y)
        adam.step(1e-2, net, loss.backward())
        return loss

    fast = burnish.compile(step)
    fast(Tensor(np.ones((32, 64), np.float32)), Tensor(np.zeros(32, int)))
    (known,) = fast._steps._plans.values()
    labels = [(each.kind, each.label) for each in known._plan.steps]
    assert ("program", "gelu + dropped") in labels
    assert ("program", "dropped + gelu gradient") in labels
    assert "keep_mask" not in [kind for kind, _ in labels]


def masked(x):
    return ops.dropout(x, 0.25)


ONES = Tensor(np.ones((64, 50), np.float32))


def test_every_run_draws_anew_and_a_state_brings_its_draws_back():
    fast = burnish.compile(masked)
    burnish.seed(1)
    runs = [fast(ONES).numpy() for _ in range(2)]
    state = rng.state()
    runs += [fast(ONES).numpy() for _ in range(2)]
    for i, run in enumerate(runs):
        assert set(np.unique(run)) == {0, np.float32(1 / 0.75)}
        assert all((run != other).any() for other in runs[:i])
    rng.restore(state)
    again = [fast(ONES).numpy() for _ in range(2)]
    assert all((a == b).all() for a, b in zip(again, runs[2:], strict=True))
    burnish.seed(1)
    assert (masked(ONES).numpy() == runs[0]).all()
    assert "dropped" in fast.plan(ONES)


def test_plans_that_run_at_once_have_masks_of_their_own():
    fast, found = burnish.compile(masked), []
    fast(ONES)
    burnish.seed(2)

    def call():
        found.extend((fast(ONES).numpy() > 0).tobytes() for _ in range(50))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    burnish.seed(2)
    keys = [rng.key() for _ in range(200)]
    expected = {drawn_mask(ONES.data.size, 0.75, key).tobytes() for key in keys}
    assert set(found) == expected
    assert len(expected) == 200


def test_a_mask_that_is_a_result_is_not_written_over():
    def both(x):
        kept = keep_mask(x.shape, 0.5, CPU)
        noise = Tensor.randn(*x.shape)
        return ops.where(kept, x + noise, 0), kept, noise

    fast = burnish.compile(both)
    fast(ONES)
    first = fast(ONES)
    held = [np.array(each.data) for each in first]
    fast(ONES)
    for one, before in zip(first, held, strict=True):
        assert (one.data == before).all()
    y, kept, noise = held
    assert (y == np.where(kept, 1 + noise, np.float32(0))).all()
