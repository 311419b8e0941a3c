"""Sums and the norms of their rows, with gradients, in steps of half precision."""

import cupy
import ml_dtypes
import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops, optim
from burnish.backend.cuda.norms.residual import add_norm
from burnish.backend.cuda.norms.residual_gradient import norm_gradient

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
HALF = {"f2": np.dtype("f2"), "bfloat16": BFLOAT16}
ROUNDING = {"f2": 1e-3, "bfloat16": 8e-3}
SINGLE = np.dtype("f4")


def apart(made, wanted):
    made = cupy.asnumpy(made).astype(np.float64)
    return np.linalg.norm(made - wanted) / np.linalg.norm(wanted)


def unit_of(x, eps, center):
    off = x - x.mean(-1, keepdims=True) if center else x
    deviation = np.sqrt((off * off).mean(-1, keepdims=True) + eps)
    return off / deviation, deviation


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("n", [8, 64, 200, 768, 1544, 8192])
@pytest.mark.parametrize("half", HALF)
def test_a_norm_is_written_in_two_precisions(half, n, center):
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 37, n)).astype("f4")
    weight, bias = rng.normal(size=(2, n)).astype("f4")
    held, given = cupy.asarray(x), cupy.asarray(z).astype(HALF[half])
    total, y, rounded = add_norm(
        held,
        given,
        cupy.asarray(weight),
        cupy.asarray(bias),
        0.1,
        center=center,
        dtype=SINGLE,
        kept=SINGLE,
        half=HALF[half],
    )
    wanted = x.astype("f8") + cupy.asnumpy(given).astype("f8")
    assert apart(total, wanted) < 1e-7
    unit, _ = unit_of(wanted, 0.1, center)
    assert apart(y, unit * weight + bias) < 1e-6
    assert rounded.dtype == HALF[half]
    np.testing.assert_array_equal(
        cupy.asnumpy(rounded), cupy.asnumpy(y).astype(HALF[half])
    )


@pytest.mark.parametrize(
    ("rows", "n"), [(1, 768), (37, 8), (37, 1544), (37, 8192), (3000, 200), (3000, 768)]
)
@pytest.mark.parametrize(
    ("plain", "halves", "beyond", "weighted", "center"),
    [
        (True, 0, False, True, True),
        (False, 1, False, False, True),
        (True, 3, True, True, True),
        (True, 1, True, True, False),
        (False, 2, True, False, False),
    ],
)
@pytest.mark.parametrize("half", HALF)
def test_gradients_of_a_norm(half, plain, halves, beyond, weighted, center, n, rows):
    rng, eps = np.random.default_rng(0), 0.1
    x = rng.normal(size=(rows, n)).astype("f4")
    weight = rng.normal(size=n).astype("f4") if weighted else None

    def slope(dtype):
        return cupy.asarray(rng.normal(size=(rows, n)).astype("f4")).astype(dtype)

    g = slope("f4") if plain else None
    parts = [slope(HALF[half]) for _ in range(halves)]
    more = slope("f4") if beyond else None
    found = norm_gradient(
        g,
        parts,
        more,
        cupy.asarray(x),
        None if weight is None else cupy.asarray(weight),
        eps,
        center=center,
        half=HALF[half],
        rounds=True,
    )
    given = [*parts, *([] if g is None else [g])]
    whole = np.sum([cupy.asnumpy(a).astype("f8") for a in given], axis=0)
    unit, deviation = unit_of(x.astype("f8"), eps, center)
    inward = whole if weight is None else whole * weight
    level = inward.mean(-1, keepdims=True) if center else 0
    along = (inward * unit).mean(-1, keepdims=True)
    wanted = (inward - level - unit * along) / deviation
    if more is not None:
        wanted = wanted + cupy.asnumpy(more)
    out, rounded, by_weight, by_bias = found
    assert apart(out, wanted) < 5e-6
    assert rounded.dtype == HALF[half]
    np.testing.assert_array_equal(
        cupy.asnumpy(rounded), cupy.asnumpy(out).astype(HALF[half])
    )
    assert apart(by_weight, (whole * unit).sum(0)) < 1e-5
    assert apart(by_bias, whole.sum(0)) < 1e-5


class Layer(nn.Module):
    """A transformer's layer; before: whether norms are of a branch's input."""

    def __init__(self, norm, before):
        self.query, self.key, self.value = (nn.Linear(64, 64) for _ in range(3))
        self.out = nn.Linear(64, 64)
        self.norm1, self.norm2 = norm(64), norm(64)
        self.linear1, self.linear2 = nn.Linear(64, 128), nn.Linear(128, 64)
        self.before = before

    def attend(self, x):
        n, t, _ = x.shape
        q, k, v = (
            layer(x).reshape(n, t, 4, 16).swapaxes(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        y = ops.scaled_dot_product_attention(q, k, v)
        return self.out(y.swapaxes(1, 2).reshape(n, t, 64))

    def feed(self, x):
        return self.linear2(ops.gelu(self.linear1(x)))

    def forward(self, x):
        if self.before:
            x = x + self.attend(self.norm1(x))
            return x + self.feed(self.norm2(x))
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.feed(x))


class Net(nn.Module):
    def __init__(self, norm, before):
        self.words, self.places = nn.Embedding(50, 64), nn.Embedding(17, 64)
        self.layers = nn.Sequential(*(Layer(norm, before) for _ in range(3)))
        self.norm, self.head = norm(64), nn.Linear(64, 10)

    def forward(self, x, places):
        x = self.words(x) + self.places(places)
        return self.head(self.norm(self.layers(x))[:, 0])


def words(seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 50, (6, 17))
    places = np.arange(17)[None].repeat(6, 0)
    given = x, places, rng.integers(0, 10, 6)
    return tuple(Tensor(a).to("cuda") for a in given)


@pytest.mark.parametrize("norm", [nn.LayerNorm, nn.RMSNorm])
@pytest.mark.parametrize("before", [False, True], ids=["after", "before"])
@pytest.mark.parametrize(("precision", "near"), [("bf16", 2.5e-2), ("fp16", 3e-3)])
def test_gradients_of_a_transformer(precision, near, before, norm):
    burnish.seed(0)
    net = Net(norm, before).to("cuda:autodiff")

    def slopes(x, places, t):
        found = nn.cross_entropy(net(x, places), t).backward()
        return {k: found.get(p) for k, p in net.named_parameters()}

    def values(step):
        return {k: v.numpy().astype("f8") for k, v in step(*words()).items()}

    exact = values(slopes)
    fast = burnish.compile(slopes, precision=precision)
    for _ in range(3):
        made = values(fast)
    assert "one CUDA graph" in fast.explain()
    gap = sum(((made[k] - v) ** 2).sum() for k, v in exact.items())
    whole = sum((v**2).sum() for v in exact.values())
    assert 0 < (gap / whole) ** 0.5 < near


def test_a_sum_that_no_norm_reads():
    """Every reader of a sum, and a step's result, gets its values."""
    net, rule = nn.Linear(64, 64).to("cuda:autodiff"), optim.SGD()

    def step(x, weight):
        made = x + net(x)
        norm = ops.layer_norm_from(made, weight=weight)
        other = ops.layer_norm_from(made)
        rule.step(0.0, net, (norm * other * made).mean().backward())
        return made, norm, other, x + net.weight[0:4]

    rng = np.random.default_rng(0)
    x = Tensor(rng.normal(size=(4, 64)).astype("f4")).to("cuda")
    weight = Tensor(rng.normal(size=64).astype("f4")).to("cuda")
    fast = burnish.compile(step, precision="bf16")
    for _ in range(3):
        found = fast(x, weight)
    for made, wanted in zip(found, step(x, weight), strict=True):
        assert made.dtype == np.float32
        assert apart(made.data, wanted.numpy().astype("f8")) < 8e-3


def test_a_sum_with_weights_before_a_step():
    """A sum that is asked for after a step has the weights from before it."""
    net, rule = nn.Linear(64, 64, bias=False).to("cuda:autodiff"), optim.SGD()

    def step(x):
        made = x + net.weight
        other = net.weight.detach() + x
        rule.step(0.1, net, (net(x) ** 2).mean().backward())
        return made - net.weight, other - net.weight

    x = np.random.default_rng(0).normal(size=(64, 64)).astype("f4")
    held = Tensor(x).to("cuda")
    fast = burnish.compile(step, precision="bf16")
    for _ in range(3):
        before = net.weight.numpy()
        found = fast(held)
        for made in found:
            wanted = x + before - net.weight.numpy()
            np.testing.assert_allclose(made.numpy(), wanted, atol=1e-6)
