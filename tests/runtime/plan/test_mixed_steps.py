"""Steps in mixed precision without a GPU: which calls are given what, and gradients.

NumPy takes the place of the GPU's kernels; tests/runtime/gpu compares those.
"""

import ml_dtypes
import numpy as np
import pytest

from burnish import Tensor, nn, ops, optim, seed
from burnish.autodiff import Variable
from burnish.backend.cuda import layout
from burnish.backend.cuda.elementwise import fused
from burnish.backend.cuda.norms import channels, moved
from burnish.optim.core import rounded
from burnish.plan.cuda.stepping import attended, mixed, normalized, summed
from burnish.plan.cuda.stepping.following import Following
from burnish.plan.cuda.stepping.mixed import Mixed

SINGLE, BFLOAT16 = np.dtype("f4"), np.dtype(ml_dtypes.bfloat16)
HALVES = [np.dtype("f2"), BFLOAT16]


def columns(a, x):
    return a.reshape(-1, *(1,) * (x.ndim - 2))


def statistics(x, weight, bias, eps, number=None):
    wide, axes = x.astype("f4"), (0, *range(2, x.ndim))
    mean, var = wide.mean(axes), wide.var(axes)
    by = 1 / np.sqrt(var + eps)
    factor = by if weight is None else by * weight
    shift = np.zeros_like(mean) if bias is None else bias
    return np.stack([mean, factor, shift, by]), mean, var


def applied(x, factors, beside, act):
    center, factor, shift = (columns(a, x) for a in factors[:3])
    y = (x.astype("f4") - center) * factor + shift
    y = y if beside is None else y + beside.astype("f4")
    return (np.maximum(y, 0) if act else y).astype(x.dtype)


def applied_gradient(g, y, x, factors, weight, beside, act, more=None):
    g = g if more is None else g.astype("f4") + more.astype("f4")
    g = np.where(y > 0, g.astype("f4"), 0) if act else g.astype("f4")
    axes, by = (0, *range(2, x.ndim)), factors[3]
    unit = (x.astype("f4") - columns(factors[0], x)) * columns(by, x)
    shift, scale = g.sum(axes), (g * unit).sum(axes)
    count = x.size / x.shape[1]
    along = g - columns(shift / count, x) - unit * columns(scale / count, x)
    own = along * columns(factors[1], x)
    kept = g.astype(x.dtype) if beside else None
    return own.astype(x.dtype), scale, shift, kept


def cast_all(arrays, dtype, scale=None):
    return [a.astype(dtype) for a in arrays]


def turned_all(arrays, dtype):
    """Another memory order, so that a test sees whose result it is."""
    return [np.asfortranarray(a.astype(dtype)) for a in arrays]


def add_norm(x, z, weight, bias, eps, *, center, dtype, kept, half=None):
    total = x.astype("f4") if z is None else x.astype("f4") + z.astype("f4")
    y = total - total.mean(-1, keepdims=True) if center else total
    y = y / np.sqrt((y * y).mean(-1, keepdims=True) + eps)
    y = (y if weight is None else y * weight) + (0 if bias is None else bias)
    return total, y.astype(dtype), y.astype(half)


@pytest.fixture(autouse=True)
def on_numpy(monkeypatch):
    for function in (statistics, applied, applied_gradient):
        monkeypatch.setattr(channels, function.__name__, function)
    monkeypatch.setattr(fused, "cast", lambda x, dtype: x.astype(dtype))
    monkeypatch.setattr(layout, "last", lambda x: x)
    monkeypatch.setattr(mixed, "cast_all", cast_all)
    monkeypatch.setattr(mixed, "turned_all", turned_all)
    monkeypatch.setattr(summed, "add_norm", add_norm)
    monkeypatch.setattr(rounded, "cast_all", cast_all)
    monkeypatch.setattr(attended, "attended_for_gradient", lambda *given: None)
    rules = normalized.normalized.rules_on
    monkeypatch.setitem(rules, "numpy", rules["cupy"])


class Block(nn.Module):
    def __init__(self, c, o):
        self.conv1 = nn.Conv2d(c, o, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(o)
        self.conv2 = nn.Conv2d(o, o, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(o, affine=False)
        self.beside = nn.Conv2d(c, o, 1, bias=False)
        self.norm3 = nn.BatchNorm2d(o)

    def forward(self, x):
        y = self.norm2(self.conv2(self.norm1(self.conv1(x)).relu()))
        return (y + self.norm3(self.beside(x))).relu()


class Net(nn.Module):
    def __init__(self):
        self.one, self.two = Block(3, 8), Block(8, 8)
        self.pool, self.norm = nn.AdaptiveAvgPool2d(1), nn.LayerNorm(8)
        self.linear = nn.Linear(8, 5)

    def forward(self, x):
        x = self.pool(self.two(self.one(x)))
        x = self.norm(x.reshape(x.shape[0], -1))
        q = x.reshape(2, 1, 3, 8)
        y = ops.scaled_dot_product_attention(q, q, q)
        return self.linear(x + y.reshape(6, 8))


def found(net, follow=None):
    rng = np.random.default_rng(0)
    x = Tensor(rng.normal(size=(6, 3, 9, 9)).astype("f4"))
    t = Tensor(rng.integers(0, 5, 6))

    def gradients():
        loss = nn.cross_entropy(net(x), t)
        return loss, loss.backward()

    if follow is None:
        loss, made = gradients()
    else:
        with follow.running():
            loss, made = gradients()
    parts = {path: made.get(p) for path, p in net.named_parameters()}
    assert all(part.dtype == SINGLE for part in parts.values())
    state = {k: v.copy() for k, v in net.state_dict().items() if "running" in k}
    flat = np.concatenate([part.numpy().ravel() for part in parts.values()])
    return loss.item(), flat, state


def start():
    seed(0)
    return Net().to("cpu:autodiff")


def apart(made, wanted):
    return np.linalg.norm(made - wanted) / np.linalg.norm(wanted)


def test_batch_norm_with_what_follows_it_has_the_same_gradients(monkeypatch):
    calls, sums = [], []

    def counted(*given):
        calls.append(given[2:])
        return applied(*given)

    def summed(*given):
        sums.append(given[7] is not None)
        return applied_gradient(*given)

    monkeypatch.setattr(channels, "applied", counted)
    monkeypatch.setattr(channels, "applied_gradient", summed)
    net = start()
    twin = net.fork("cpu:autodiff")
    loss, wanted, state = found(net)
    own, made, other = found(twin, Following(False))
    assert [(beside is not None, act) for beside, act in calls] == [
        (False, True),
        (False, False),
        (True, True),
    ] * 2
    # the first block's result has two readers, the second's has one
    assert sums == [False, False, False, True, False, False]
    assert own == pytest.approx(loss, rel=1e-6)
    assert apart(made, wanted) < 1e-5
    for name, value in state.items():
        np.testing.assert_allclose(other[name], value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_gradients_of_mixed_precision(dtype):
    net = start()
    twin = net.fork("cpu:autodiff")
    loss, wanted, _ = found(net)
    own, made, _ = found(twin, Following(False, Mixed(dtype)))
    assert own == pytest.approx(loss, rel=2e-2)
    assert 0 < apart(made, wanted) < (0.03 if dtype == "f2" else 0.15)


class Factor:
    """A `Scale` of NumPy's."""

    def __init__(self, factor):
        self.factor, self.is_over = factor, False

    def scaled(self, gradient):
        return gradient * gradient.dtype.type(self.factor)

    def divided(self, arrays, dtype, scale):
        made = [a.astype(dtype) / dtype.type(self.factor) for a in arrays]
        self.is_over = not all(np.isfinite(a).all() for a in made)
        return made

    def halve(self):
        self.factor /= 2 if self.is_over else 1
        return self.is_over


def test_a_scaled_loss_has_the_gradients_of_the_loss(monkeypatch):
    """Gradients below float16's least number are there, and none overflows."""
    weight, x = (np.full(shape, 1e-3, "f4") for shape in ((1, 8), (4, 8)))
    for first, small in ((65536, 1e-4), (2.0**30, 1.0)):
        layer, factor = nn.Linear(8, 1, bias=False).to("cpu:autodiff"), Factor(first)
        layer.weight.assign(weight)
        monkeypatch.setattr(mixed, "cast_all", factor.divided)
        follow = Following(False, Mixed(np.dtype("f2")), factor)
        with follow.running(), np.errstate(over="ignore", invalid="ignore"):
            slopes = ((layer(Tensor(x)) * small).mean()).backward()
        found = slopes.get(layer.weight).numpy()
        np.testing.assert_allclose(found, 1e-3 * small, rtol=2e-3)
        assert found.dtype == SINGLE
        assert (factor.factor == first) == (small == 1e-4)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_what_each_call_is_given(dtype):
    one, half = (Tensor(np.ones((2, 2), kind)) for kind in ("f4", dtype))
    given = Mixed(dtype)

    def kinds(function, *args):
        args, _ = given.given(function, args, {})
        return [a.dtype for a in args if isinstance(a, Variable)]

    assert kinds(ops.matmul, one, one) == [dtype, dtype]
    assert kinds(ops.matmul, half, one) == [dtype, dtype]
    assert kinds(ops.relu, half) == [dtype]
    assert kinds(ops.relu, one) == [SINGLE]
    assert kinds(ops.add, half, one) == [dtype, SINGLE]
    assert kinds(ops.softmax, half) == [SINGLE]
    assert kinds(ops.exp, half) == [SINGLE]
    assert kinds(ops.concat_of, half, one) == [SINGLE, SINGLE]
    assert kinds(ops.matmul, Tensor(np.ones((2, 2)))) == [np.float64]


def test_a_rounded_parameter_is_made_once_until_it_changes():
    given, layer = Mixed(BFLOAT16), nn.Linear(3, 2)
    x = Tensor(np.ones((1, 3), "f4"))

    def rounded():
        return given.given(ops.linear, (x, layer.weight), {})[0][1]

    first = rounded()
    assert rounded() is first
    layer.weight.assign(np.zeros((2, 3), "f4"))
    given.forget(layer.weight)
    assert not rounded().numpy().any()
    given.prepare([(layer.weight, False)])
    assert list(given.parameters.values()) == [(layer.weight, False)]


def test_kernels_of_convolutions_are_rounded_with_channels_last():
    given, layer = Mixed(BFLOAT16), nn.Conv2d(3, 4, 3)
    x = Tensor(np.ones((1, 3, 5, 5), "f4"))

    def rounded():
        return given.given(ops.conv, (x, layer.weight), {})[0][1]

    first = rounded()
    assert list(given.parameters.values()) == [(layer.weight, True)]
    given.forget(layer.weight)
    given.prepare(given.parameters.values())
    made = rounded()
    assert made.data is not first.data
    assert made.data.strides == turned_all([layer.weight.data], BFLOAT16)[0].strides
    np.testing.assert_array_equal(made.numpy(), first.numpy())
    given.forget(layer.weight)
    given.prepare([(layer.weight, False)])  # of another layout: not taken
    assert rounded().data.strides == first.data.strides


def test_values_from_before_a_step_are_noticed():
    net, rule = nn.Linear(3, 2).to("cpu:autodiff"), optim.SGD()
    follow = Following(False)
    with follow.running():
        loss = net(Tensor(np.ones((1, 3), "f4"))).sum()
        rule.step(0.1, net, loss.backward())
        assert not follow.uses_old_values
        (net(Tensor(np.ones((1, 3), "f4"))).sum()).backward()
    assert follow.uses_old_values


def test_gradients_by_operators():
    """They are what gradients of gradients are computed from."""
    rng = np.random.default_rng(0)
    x, g, z = rng.normal(size=(3, 4, 5, 2, 2))
    weight, bias = rng.normal(size=(2, 5))
    factors, *_ = statistics(x, weight, bias, 0.1)
    factors = factors.astype("f8")
    y = applied(x.astype("f4"), factors, z, True)
    wanted = applied_gradient(g, y, x, factors, weight, True, True)
    rule, _ = normalized.normalized.rules["x"]
    for slopes in ((g, None), (None, g), (0.3 * g, 0.7 * g)):
        made = rule(slopes, (y, y), x, factors, weight, bias, z, eps=0.1, act=True)
        for one, other in zip(made, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)

    q, k, v, g = (
        Tensor(rng.normal(size=(2, 3, 4, 8))).to("cpu:autodiff").require_grad()
        for _ in range(4)
    )
    y = ops.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.4)
    slopes = (y * g).sum().backward()
    rule, _ = attended.attended.rules["q"]
    arrays = (a.numpy() for a in (q, k, v))
    made = rule((g.numpy(), None), None, *arrays, None, scale=0.4, is_causal=True)
    for one, other in zip(made, (q, k, v), strict=True):
        np.testing.assert_allclose(one, slopes.get(other).numpy(), rtol=1e-9)


class Twice(nn.Module):
    """One norm that sees two batches in a step, one with an average, one that is read.

    momentum=None is the average of all batches, which has a share that is a tensor.
    """

    def __init__(self):
        self.norm = nn.BatchNorm1d(4)
        self.other = nn.BatchNorm1d(4, momentum=0.3)
        self.average = nn.BatchNorm1d(4, momentum=None)
        self.read = nn.BatchNorm1d(4)

    def forward(self, x):
        x = self.norm(self.norm(x) * 2.0)
        y = self.read(x)
        mean = self.read.running_mean.sum()
        return self.average(self.other(x)) + y + mean


@pytest.fixture
def launches(monkeypatch):
    """The moves of each call of the kernel, which NumPy computes."""
    found = []

    def on_numpy(moves):
        found.append(len(moves))
        return [
            old + 1 if new is None else old * (1 - share) + new * (share * scale)
            for old, new, share, scale in moves
        ]

    monkeypatch.setattr(moved, "moved", on_numpy)
    return found


def test_statistics_are_moved_in_one_launch(launches):
    seed(0)
    net = Twice().to("cpu:autodiff")
    twin = net.fork("cpu:autodiff")
    x = np.random.default_rng(0).normal(size=(6, 4)).astype("f4")
    wanted = [net(Tensor(x)) for _ in range(2)][-1]
    for _ in range(2):
        follow = Following(False)
        with follow.running():
            made = twin(Tensor(x))
            lent = [b for _, b in twin.named_buffers() if b.is_lazy]
            assert lent
            follow.settle()
        assert not any(b.is_lazy for b in lent)
    # what was read, and an average's statistics, are there already
    assert launches == [len(lent)] * 2
    np.testing.assert_allclose(made.numpy(), wanted.numpy(), rtol=1e-5)
    for (name, one), (_, other) in zip(
        net.named_buffers(), twin.named_buffers(), strict=True
    ):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-6, err_msg=name)


def test_values_that_are_not_settled_are_computed_when_they_are_read(launches):
    norm = nn.BatchNorm1d(4).to("cpu:autodiff")
    follow = Following(False)
    with follow.running():
        norm(Tensor(np.ones((3, 4), "f4")))
    assert norm.num_batches_tracked.is_lazy
    np.testing.assert_allclose(norm.running_mean.numpy(), np.full(4, 0.1), rtol=1e-6)
    norm.running_var.assign(np.zeros(4, "f4"))
    follow.settle()
    assert launches == [1]
    assert norm.num_batches_tracked.numpy() == 1
    assert not norm.running_var.numpy().any()
