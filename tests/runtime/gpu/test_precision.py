"""Steps of training in half precision, and the kernels that they are made of."""

import copy

import cupy
import ml_dtypes
import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops, optim
from burnish.backend.cuda import layout
from burnish.backend.cuda.attention.attention import (
    attended_for_gradient,
    attention_gradient,
)
from burnish.backend.cuda.elementwise import fused
from burnish.backend.cuda.elementwise.casts import cast_all, copy_all, turned_all
from burnish.backend.cuda.elementwise.scaling import Scale
from burnish.backend.cuda.norms import channels, moved, rows
from burnish.learner import Learner, Supervised
from tests.harness.waiting import waits

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
ROUNDING = {"f8": 1e-13, "f4": 2e-6, "f2": 2e-3, BFLOAT16: 1.6e-2}
SHAPES = [(5, 64, 7, 6), (3, 7, 5, 4), (33, 24), (2, 200, 9)]


def apart(made, wanted):
    made = cupy.asnumpy(made).astype(np.float64)
    return np.linalg.norm(made - wanted) / np.linalg.norm(wanted)


def given(shape, dtype, last, rng):
    x = rng.normal(size=shape).astype(dtype)
    held = cupy.asarray(x)
    if last and len(shape) > 2:
        turned = cupy.ascontiguousarray(cupy.moveaxis(held, 1, -1))
        held = cupy.moveaxis(turned, -1, 1)
    return held, x.astype(np.float64)


def host(value):
    return np.array(value.get() if hasattr(value, "get") else value)


def per_channel(values, x):
    return values.reshape(-1, *(1,) * (x.ndim - 2))


@pytest.mark.parametrize("act", [False, True])
@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", BFLOAT16], ids=str)
def test_batch_norm_with_a_sum_and_relu(dtype, shape, last, beside, act):
    rng = np.random.default_rng(0)
    dtype = np.dtype(dtype)
    number = "f8" if dtype == "f8" else "f4"
    c, axes = shape[1], (0, *range(2, len(shape)))
    held, x = given(shape, dtype, last, rng)
    more, z = given(shape, dtype, not last, rng) if beside else (None, 0)
    slope, g = given(shape, dtype, last, rng)
    twice, less = (cupy.asarray(a.astype(dtype)) for a in (2 * g, -g))  # exact: so is g
    weight, bias = rng.normal(size=(2, c)).astype(number)
    factors, mean, var = channels.statistics(
        held, *map(cupy.asarray, (weight, bias)), 0.1
    )
    assert mean.dtype == var.dtype == number
    near = ROUNDING[dtype if dtype == BFLOAT16 else dtype.str[1:]]
    sums = 2e-6 if number == "f4" else 1e-13
    assert apart(mean, x.mean(axes)) < 10 * sums
    assert apart(var, x.var(axes)) < 10 * sums

    deviation = per_channel(np.sqrt(x.var(axes) + 0.1), x)
    unit = (x - per_channel(x.mean(axes), x)) / deviation
    y = unit * per_channel(weight.astype("f8"), x) + per_channel(bias, x) + z
    made = channels.applied(held, factors, more, act)
    assert made.dtype == dtype
    assert apart(made, np.maximum(y, 0) if act else y) < near

    parts = channels.applied_gradient(
        slope, made, held, factors, cupy.asarray(weight), beside, act
    )
    if act:
        g = np.where(cupy.asnumpy(made).astype("f8") > 0, g, 0)
    inward = g * per_channel(weight.astype("f8"), x)
    level, along = (per_channel(a.mean(axes), x) for a in (inward, inward * unit))
    assert apart(parts[0], (inward - level - unit * along) / deviation) < 2 * near
    assert apart(parts[1], (g * unit).sum(axes)) < 20 * sums + near / 8
    assert apart(parts[2], g.sum(axes)) < 20 * sums + near / 8
    assert (parts[3] is not None) == beside
    if beside:
        assert apart(parts[3], g) < near
    if beside and act:
        again = channels.applied_gradient(
            twice, made, held, factors, cupy.asarray(weight), beside, act, less
        )
        for part, other in zip(parts, again, strict=True):
            np.testing.assert_array_equal(cupy.asnumpy(part), cupy.asnumpy(other))


@pytest.mark.parametrize("shape", [(4096, 768), (33, 7), (5, 16), (1, 3000)])
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", BFLOAT16], ids=str)
def test_sums_of_channels(dtype, shape):
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    made = rows.channel_sums(cupy.asarray(x), *shape, 1)
    scale = np.abs(x.astype("f8")).sum(0)
    wanted = x.astype("f8").sum(0)
    summed = 1e-15 if dtype == "f8" else 2e-7  # of the scale, in the sum itself
    stored = {"float64": 0, "float32": 6e-8}.get(np.dtype(dtype).name, 4e-3)
    gap = np.abs(cupy.asnumpy(made).astype("f8") - wanted)
    assert (gap <= summed * scale + stored * np.abs(wanted)).all()


@pytest.mark.parametrize("shape", [(3, 5, 7), (1000,), (2, 16, 4, 4)])
def test_casts_and_sums_of_two_precisions(shape):
    x = np.random.default_rng(0).normal(size=shape).astype("f4")
    held = cupy.asarray(x)
    for dtype in (np.dtype("f2"), BFLOAT16):
        for each in (held, held[::-1]):
            half = fused.cast(each, dtype)
            np.testing.assert_array_equal(
                cupy.asnumpy(half), cupy.asnumpy(each).astype(dtype)
            )
        half = fused.cast(held, dtype)
        assert fused.cast(half, np.dtype("f4")).dtype == "f4"
        made = ops.add(half, held)
        wanted = cupy.asnumpy(half).astype("f4") + x
        np.testing.assert_array_equal(cupy.asnumpy(made), wanted)


def test_statistics_are_moved_together():
    rng = np.random.default_rng(0)
    moves, wanted = [], []
    for i in range(160):
        kind, size = ("f4", "f8", "i8")[i % 3], (1, 7, 300, 2048)[i % 4]
        old, new = (rng.normal(size=size).astype("f8") * 9).astype(kind), None
        if kind == "i8":
            wanted.append(old + 1)
        else:
            new = rng.normal(size=size).astype(kind)
            wanted.append(old * (1 - 0.3) + new * (0.3 * 1.25))
        held = (a if a is None else cupy.asarray(a) for a in (old, new))
        moves.append(moved.Move(*held, 0.3, 1.25))
    for made, other in zip(moved.moved(moves), wanted, strict=True):
        assert made.dtype == other.dtype
        near = 3e-7 if made.dtype == "f4" else 1e-15
        np.testing.assert_allclose(made.get(), other, rtol=near, atol=3 * near)


def test_many_arrays_in_one_launch():
    rng, single = np.random.default_rng(0), np.dtype("f4")
    shapes = [
        (3, 5),
        (1,),
        (0, 4),
        (2048,),
        (4099,),
        (70, 129),
        *[(i,) for i in range(1, 150)],
    ]
    arrays = [rng.normal(size=shape).astype("f4") for shape in shapes]
    held = [cupy.asarray(a) for a in arrays]
    for dtype in (np.dtype("f2"), BFLOAT16):
        halves = cast_all(held, dtype)
        back = cast_all([*halves, held[0]], single)
        assert back[-1] is held[0]
        for a, half, wide in zip(arrays, halves, back, strict=False):
            np.testing.assert_array_equal(cupy.asnumpy(half), a.astype(dtype))
            np.testing.assert_array_equal(
                cupy.asnumpy(wide), a.astype(dtype).astype("f4")
            )
    kinds = [
        a.astype(k) for a, k in zip(held, ("i8", "?", "f8", "f2") * 40, strict=False)
    ]
    news = [cupy.zeros_like(a) for a in kinds]
    copy_all(list(zip(news, kinds, strict=True)))
    for a, b in zip(news, kinds, strict=True):
        np.testing.assert_array_equal(cupy.asnumpy(a), cupy.asnumpy(b))
    one, other = held[0].copy(), held[0] + 1
    copy_all([(one, other), (other, one)])  # each has what the other had
    np.testing.assert_array_equal(cupy.asnumpy(other), arrays[0])
    np.testing.assert_array_equal(cupy.asnumpy(one), arrays[0] + 1)


def test_many_arrays_are_turned_in_one_launch():
    rng = np.random.default_rng(0)
    shapes = [(3, 5, 2, 2), (0, 4, 3), (64, 8, 3, 3), (70, 129, 7), (2, 1, 5)]
    shapes += [(i, 3, 2) for i in range(1, 100)]
    arrays = [rng.normal(size=shape).astype("f4") for shape in shapes]
    for dtype in (np.dtype("f2"), BFLOAT16):
        made = turned_all([cupy.asarray(a) for a in arrays], dtype)
        for a, half in zip(arrays, made, strict=True):
            assert half.dtype == dtype
            assert layout.last(half) is half or not half.size
            np.testing.assert_array_equal(cupy.asnumpy(half), a.astype(dtype))


def test_an_overflow_is_noticed():
    scale = Scale()
    held = [cupy.full((5, 7), 3, "f2"), cupy.full(3, 2, "f4")]
    made = cast_all(held, np.dtype("f4"), scale)
    assert [float(a.ravel()[0]) for a in made] == [3 / 65536, 2 / 65536]
    scale.end()
    assert scale.state.tolist() == [65536, 1]
    assert int(scale.overflow[0]) == 0
    held[1][2] = np.inf
    cast_all(held, np.dtype("f4"), scale)
    copy_all([(made[0], made[0] + 1)], scale)  # copies nothing
    scale.end()
    assert scale.state.tolist() == [32768, 0]
    assert float(made[0][0, 0]) == 3 / 65536
    scale.begin()
    assert int(scale.overflow[0]) == 0


@pytest.mark.parametrize("shape", [(64, 3, 7, 7), (5, 100, 3, 3), (2, 1, 40, 40)])
@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_channels_last_and_back(dtype, shape):
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    made = layout.last(cupy.asarray(x))
    assert made.transpose(0, 2, 3, 1)._c_contiguous
    np.testing.assert_array_equal(cupy.asnumpy(made), x)
    np.testing.assert_array_equal(cupy.asnumpy(layout.contiguous(made)), x)


MASKS = ["none", "causal", "booleans", "added", "hidden rows"]


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize(
    "sizes",
    [
        (2, 128, 128, 64),
        (2, 37, 70, 32),
        (2, 65, 130, 128),
        (45, 128, 128, 64),  # many heads of few keys: all gradients in one kernel
        (44, 37, 70, 32),
        (44, 5, 2, 16),
        (46, 70, 33, 48),
    ],
)
@pytest.mark.parametrize("dtype", ["f2", BFLOAT16, "f4"], ids=str)
def test_attention_and_its_gradients(dtype, sizes, kind):
    rng, (n, t, s, d) = np.random.default_rng(0), sizes
    h = 3

    def heads(rows):
        x = cupy.asarray(rng.normal(size=(n, rows, h, d)).astype(dtype))
        return x.transpose(0, 2, 1, 3)

    q, k, v, g = heads(t), heads(s), heads(s), heads(t)
    mask = None
    if kind == "booleans":
        mask = rng.random((n, 1, t, s)) < 0.7
    elif kind == "hidden rows":
        mask = np.broadcast_to(rng.random((1, h, t, 1)) < 0.7, (1, h, t, s)).copy()
    elif kind == "added":
        mask = rng.normal(size=(n, 1, 1, s)).astype("f4")
    held = None if mask is None else cupy.asarray(mask)
    options = 0.3, kind == "causal"
    y, logs = attended_for_gradient(q, k, v, held, *options)
    parts = attention_gradient(g, y, logs, q, k, v, held, *options)

    a, b, c, e = (cupy.asnumpy(x).astype("f8") for x in (q, k, v, g))
    scores = a @ b.swapaxes(-1, -2) * 0.3
    if kind == "added":
        scores = scores + mask
    elif mask is not None:
        scores = np.where(mask, scores, -np.inf)
    if kind == "causal":
        scores = np.where(np.tri(t, s) > 0, scores, -np.inf)
    peak = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(peak == -np.inf, 0, peak))
    total = weights.sum(-1, keepdims=True)
    weights = weights / np.where(total == 0, 1, total)
    inward = e @ c.swapaxes(-1, -2)
    slope = weights * (inward - (inward * weights).sum(-1, keepdims=True)) * 0.3
    wanted = slope @ b, slope.swapaxes(-1, -2) @ a, weights.swapaxes(-1, -2) @ e
    near = {"f2": 1e-3, "f4": 2e-6}.get(dtype, 8e-3)
    assert apart(y, weights @ c) < near
    for made, other in zip(parts, wanted, strict=True):
        assert made.dtype == dtype
        assert apart(made, other) < 2 * near


class Block(nn.Module):
    """A residual block, its shortcut normalized where the width changes."""

    def __init__(self, c, o):
        self.conv1 = nn.Conv2d(c, o, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(o)
        self.conv2 = nn.Conv2d(o, o, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(o)
        self.beside = nn.Conv2d(c, o, 1, bias=False) if c != o else None
        self.norm3 = nn.BatchNorm2d(o) if c != o else None

    def forward(self, x):
        y = self.norm1(self.conv1(x)).relu()
        y = self.norm2(self.conv2(y))
        if self.beside is not None:
            x = self.norm3(self.beside(x))
        return (x + y).relu()


def residual():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1),
        nn.MaxPool2d(3, 2, 1),
        Block(16, 32),
        Block(32, 32),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )


def pictures(seed, count=16):
    rng = np.random.default_rng(seed)
    x = Tensor(rng.normal(size=(count, 3, 40, 40)).astype("f4")).to("cuda")
    return x, Tensor(rng.integers(0, 10, count)).to("cuda")


class Attends(nn.Module):
    """A transformer's layer, its attention one call."""

    def __init__(self):
        self.parts = nn.Linear(64, 192)
        self.out = nn.Linear(64, 64)
        self.norm1, self.norm2 = nn.LayerNorm(64), nn.LayerNorm(64)
        self.linear1, self.linear2 = nn.Linear(64, 128), nn.Linear(128, 64)

    def forward(self, x):
        n, t, _ = x.shape
        q, k, v = (
            part.reshape(n, t, 4, 16).swapaxes(1, 2)
            for part in self.parts(x).split(64, axis=-1)
        )
        y = ops.scaled_dot_product_attention(q, k, v)
        x = self.norm1(x + self.out(y.swapaxes(1, 2).reshape(n, t, 64)))
        return self.norm2(x + self.linear2(ops.gelu(self.linear1(x))))


def encoder():
    return nn.Sequential(nn.Embedding(50, 64), Attends(), Attends(), nn.Linear(64, 10))


def words(seed, count=6):
    rng = np.random.default_rng(seed)
    x = Tensor(rng.integers(0, 50, (count, 17))).to("cuda")
    return x, Tensor(rng.integers(0, 10, count)).to("cuda")


def classes(net, x):
    y = net(x)
    return y if len(y.shape) == 2 else y[:, 0]


def run(make, data, rule, precision, steps=6):
    """The losses, the results and what changed; None is the step as it is."""
    burnish.seed(3)
    net, rule = make().to("cuda:autodiff"), copy.deepcopy(rule)

    def step(x, t, rate):
        made = classes(net, x)
        loss = nn.cross_entropy(made, t)
        rule.step(rate, net, loss.backward())
        return loss, made

    fast = burnish.compile(step, precision=precision) if precision else step
    found = [fast(*data(i), 1e-3) for i in range(steps)]
    if precision:
        assert "one CUDA graph" in fast.explain()
        assert precision in fast.explain()
    for loss, made in found:
        assert loss.dtype == made.dtype == np.float32
    state = {k: host(v) for k, v in net.state_dict().items()}
    held = [v for k, v in rule.state_dict().items() if getattr(v, "dtype", None)]
    assert all(
        np.dtype(v.dtype) == "f4" for v in held if np.dtype(v.dtype).kind in "fV"
    )
    losses = np.array([loss.item() for loss, _ in found])
    return losses, state


RULES = [optim.SGD(momentum=0.9), optim.AdamW()]
KINDS = [(residual, pictures), (encoder, words)]


@pytest.mark.parametrize("rule", RULES, ids=["sgd", "adamw"])
@pytest.mark.parametrize(("make", "data"), KINDS, ids=["images", "words"])
@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16", "fp16"])
def test_steps_follow_those_of_float32(make, data, rule, precision):
    wanted, weights = run(make, data, rule, None)
    losses, made = run(make, data, rule, precision)
    near = {"fp32": 2e-5, "tf32": 2e-3, "fp16": 4e-3, "bf16": 2e-2}[precision]
    np.testing.assert_allclose(losses, wanted, rtol=near)
    assert made.keys() == weights.keys()
    for name, value in weights.items():
        assert made[name].dtype == value.dtype
        if value.dtype == np.float32 and name.endswith("running_var"):
            np.testing.assert_allclose(made[name], value, rtol=4 * near)
    if precision in ("bf16", "fp16"):
        assert not np.array_equal(losses, wanted)  # it does round


def test_an_overflow_changes_nothing():
    net, rule = residual().to("cuda:autodiff"), optim.AdamW()

    def step(x, t, factor):
        loss = nn.cross_entropy(net(x), t) * factor
        rule.step(1e-3, net, loss.backward())
        return loss

    fast = burnish.compile(step, precision="fp16")
    one, huge = (Tensor(np.float32(v)).to("cuda") for v in (1, 1e35))
    for i in range(3):
        fast(*pictures(i), one)

    def values():
        return {k: host(v) for k, v in net.state_dict().items()}

    before = values()
    fast(*pictures(3), huge)
    for name, value in values().items():
        np.testing.assert_array_equal(value, before[name], err_msg=name)
    fast(*pictures(4), one)
    after = values()
    assert not np.array_equal(after["6.weight"], before["6.weight"])
    assert all(np.isfinite(v).all() for v in after.values())
    assert "one CUDA graph" in fast.explain()


@pytest.mark.parametrize("rule", [optim.Adam(), optim.RAdam()], ids=["adam", "radam"])
def test_skipped_steps_are_not_counted(rule):
    """A rule counts the steps that were taken, also with launches on their way."""
    rng = np.random.default_rng(0)
    x = Tensor(rng.normal(size=(16, 8)).astype("f4")).to("cuda")
    start = rng.normal(size=(1, 8)).astype("f4")
    factors = [1, 1e35, 1, 1, 1e35, 1e35, 1, 1e35, 1, 1, 1, 1, 1e35, 1]

    def run(precision, factors):
        net, own = nn.Linear(8, 1, bias=False).to("cuda:autodiff"), copy.deepcopy(rule)
        net.weight.assign(start)

        def step(x, factor):
            loss = (net(x) ** 2).mean() * factor
            own.step(0.1, net, loss.backward())
            return loss

        fast = burnish.compile(step, precision=precision)
        for factor in factors:
            fast(x, Tensor(np.float32(factor)).to("cuda"))
        return net.weight.numpy(), own.state_dict()

    made, state = run("fp16", factors)
    taken = factors.count(1)
    assert int(state["weight.step"]) == taken
    wanted, other = run("fp32", [1] * taken)
    assert int(other["weight.step"]) == taken
    late, _ = run("fp32", [1] * (taken + 1))
    gap = abs(made - wanted).max()
    assert gap < 5e-3
    assert gap < abs(late - wanted).max() / 3


def test_small_gradients_are_not_lost():
    def make(factor):
        net = nn.Linear(8, 1, bias=False).to("cuda:autodiff")
        net.weight.assign(np.ones((1, 8), "f4"))

        def step(x):
            loss = (net(x) * factor).mean()
            found = loss.backward()
            return loss, found.get(net.weight)

        return burnish.compile(step, precision="fp16")

    x = Tensor(np.full((4, 8), 1e-3, "f4")).to("cuda")
    fast = make(1e-6)
    for _ in range(3):
        _, gradient = fast(x)
        np.testing.assert_allclose(gradient.numpy(), 1e-9, rtol=2e-3)


def test_values_before_a_step_stay():
    """Weights are changed in place only where nobody looks at the old ones."""
    net, rule = nn.Linear(8, 3).to("cuda:autodiff"), optim.SGD()

    def step(x):
        old = net.weight.detach()
        rule.step(0.1, net, (net(x) ** 2).mean().backward())
        return (net.weight - old).abs().sum()

    fast = burnish.compile(step)
    x = Tensor(np.random.default_rng(0).normal(size=(4, 8)).astype("f4")).to("cuda")
    assert all(fast(x).item() > 0 for _ in range(4))


def test_a_copy_of_the_weights_before_a_step_stays():
    """Another module is given the weights that the rule changes afterwards."""
    net, other = (nn.Linear(8, 3, bias=False).to("cuda:autodiff") for _ in range(2))
    rule = optim.SGD()

    def step(x):
        other.weight.assign(net.weight.data)
        rule.step(0.1, net, (net(x) ** 2).mean().backward())
        return (net.weight - other.weight).abs().sum()

    fast = burnish.compile(step)
    x = Tensor(np.random.default_rng(0).normal(size=(4, 8)).astype("f4")).to("cuda")
    assert all(fast(x).item() > 0 for _ in range(4))


def test_two_rules_of_one_step():
    def make():
        burnish.seed(0)
        return nn.Linear(8, 8).to("cuda:autodiff"), nn.Linear(8, 1).to("cuda:autodiff")

    def run(compiled):
        (one, other), rules = make(), (optim.Adam(), optim.SGD(momentum=0.9))

        def step(x):
            first = (other(one(x)) ** 2).mean()
            rules[0].step(1e-2, one, first.backward())
            second = (other(one(x)) ** 2).mean()
            rules[1].step(1e-2, other, second.backward())
            return first, second

        fast = burnish.compile(step) if compiled else step
        x = Tensor(np.random.default_rng(0).normal(size=(4, 8)).astype("f4")).to("cuda")
        return [[v.item() for v in fast(x)] for _ in range(6)]

    np.testing.assert_allclose(run(True), run(False), rtol=2e-5)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_the_learner_takes_a_precision(accumulate):
    batches, found = [pictures(seed=i) for i in range(4)], []
    for kind in (False, "bf16"):
        burnish.seed(0)
        learner = Learner(
            residual().to("cuda"),
            optim.AdamW(),
            1e-3,
            epochs=2,
            step=Supervised(nn.CrossEntropyLoss()),
            accumulate=accumulate,
            compile=kind,
            renderer=None,
        )
        done = learner.fit(batches, batches[:1])
        found.append(done.state_dict()["6.weight"])
    one, other = map(host, found)
    assert other.dtype == np.float32
    assert 0 < np.linalg.norm(one - other) < 0.05 * np.linalg.norm(one)


def test_a_learner_skips_sums_with_an_overflow():
    rng = np.random.default_rng(0)
    batches = [(rng.normal(size=(8, 6)), rng.normal(size=(8, 2))) for _ in range(5)]
    batches = [[Tensor(a.astype("f4")) for a in batch] for batch in batches]
    huge = [batches[2][0], Tensor(np.full((8, 2), 1e15, np.float32))]
    found = []
    for given in (batches[:2], [*batches[:2], huge, batches[3], batches[4], huge]):
        burnish.seed(0)
        learner = Learner(
            nn.Linear(6, 2).to("cuda"),
            optim.AdamW(),
            1e-2,
            epochs=1,
            step=Supervised(nn.MSELoss()),
            accumulate=2,
            compile="fp16",
            renderer=None,
        )
        found.append(learner.fit(given).state_dict())
    for name, array in found[0].items():
        np.testing.assert_allclose(host(array), host(found[1][name]), 1e-6)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_nothing_waits_for_the_gpu(precision):
    net, rule = residual().to("cuda:autodiff"), optim.AdamW()

    def step(x, t):
        loss = nn.cross_entropy(net(x), t)
        rule.step(1e-3, net, loss.backward())
        return loss

    fast = burnish.compile(step, precision=precision)
    data = pictures(0)
    for _ in range(3):
        fast(*data)
    assert not waits(lambda: fast(*data))
