"""Products in bfloat16 against float64 of the same rounded operands, on odd shapes."""

from __future__ import annotations

import copy
import functools

import ml_dtypes
import numpy as np
import pytest

import burnish
from burnish import Tensor, data, nn, num_threads, ops, optim, set_num_threads
from burnish.learner import Learner, Supervised
from tests.runtime.plan.checks import Draw, conv_case

pytestmark = pytest.mark.usefixtures("bf16", "canaries")

ACTS = {
    "none": lambda y: y,
    "relu": ops.relu,
    "gelu": ops.gelu,
    "clip": lambda y: ops.clip(y, -0.5, 0.5),
}


@pytest.fixture
def bf16(kernels):
    if not kernels.bf16:
        pytest.skip("this processor has no products of bfloat16")


@pytest.fixture(params=[1, 2])
def threads(request):
    before = num_threads()
    set_num_threads(request.param)
    yield
    set_num_threads(before)


def rounded(x):
    """A tensor of float64 with the numbers of bfloat16."""
    return Tensor(x.data.astype(ml_dtypes.bfloat16).astype(np.float64))


def wide(x):
    if x is None:
        return None
    return Tensor(x.data.astype(np.float64))


def near(ours, wanted, tolerance=1e-5):
    wanted = wanted.numpy()
    scale = np.abs(wanted).max(initial=1e-30)
    assert ours.shape == wanted.shape
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours.numpy(), wanted, rtol=0, atol=tolerance * scale)


def check(product, x, weight, *added, act=ACTS["none"]):
    """product(x, weight, *added) of a plan; in float64 its operands are rounded."""
    fast = burnish.compile(
        lambda x, *added: act(product(x, weight, *added)), precision="bf16"
    )
    wanted = act(product(rounded(x), rounded(weight), *map(wide, added)))
    near(fast(x, *added), wanted)
    near(fast(x, *added), wanted)
    assert "bf16" in fast.explain()
    assert "to_half" in fast.plan(x, *added)
    return fast


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize(
    ("rows", "ins", "outs"),
    [
        *((1, 1, 1), (1, 33, 17), (2, 768, 50), (7, 5, 3), (15, 64, 64)),
        *((31, 200, 48), (70, 256, 100), (65, 512, 96), (3, 2, 130), (40, 1025, 16)),
    ],
)
def test_rows_times_a_weight(rows, ins, outs, act, threads):
    d = Draw(rows)
    x, weight = d.tensor(2, rows, ins), d.tensor(outs, ins) / ins**0.5
    bias, other = d.tensor(outs), d.tensor(2, rows, outs)

    def product(x, weight, bias, other):
        return ops.linear(x, weight, bias) + other

    check(product, x, weight, bias, other, act=ACTS[act])
    check(lambda x, w: x @ w, x, d.tensor(ins, outs) / ins**0.5, act=ACTS[act])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolutions(rank, seed, threads):
    d = Draw(100 * rank + seed)
    x, weight, bias, options = conv_case(d, rank)
    act = d.choice(*ACTS.values())
    check(lambda x, w, b: ops.conv(x, w, b, **options), x, weight, bias, act=act)


@pytest.mark.parametrize(
    ("ins", "outs", "groups"),
    [
        *((1, 5, 1), (3, 32, 1), (15, 16, 1), (17, 3, 1), (64, 48, 1)),
        *((96, 64, 2), (24, 24, 3), (64, 64, 16), (36, 18, 6)),
    ],
)
@pytest.mark.parametrize("name", ["conv", "conv_transpose"])
def test_channels_and_groups(name, ins, outs, groups, threads):
    d = Draw(ins)
    shape = (outs, ins // groups) if name == "conv" else (ins, outs // groups)
    weight, operator = d.tensor(*shape, 3, 2) / ins**0.5, getattr(ops, name)

    def product(x, weight):
        return operator(x, weight, stride=2, padding=1, groups=groups)

    check(product, d.tensor(2, ins, 9, 8), weight)


@pytest.mark.parametrize("size", [3, 4, 7])
def test_small_maps_with_a_border(size):
    d = Draw(size)
    x, weight = d.tensor(1, 80, size, size), d.tensor(96, 80, 3, 3) / 27
    check(lambda x, w: ops.conv(x, w, padding=1), x, weight)


def test_channels_that_are_gated():
    d = Draw(5)
    weight = d.tensor(24, 32, 1, 1)

    def product(x, gate):
        return ops.conv(x * ops.sigmoid(gate), weight)

    x, gate = d.tensor(1, 32, 6, 6), d.tensor(1, 32, 1, 1)
    fast = burnish.compile(product, precision="bf16")
    scaled = x * ops.sigmoid(gate)
    near(fast(x, gate), ops.conv(rounded(scaled), rounded(weight)), 1e-4)


TIES = np.float32([1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8, 1 + 2**-8 + 2**-20, 255.5])


@pytest.mark.parametrize("of", ["value", "parameter"])
def test_numbers_are_rounded_to_the_nearest_ties_to_even(of):
    layer = nn.Linear(5, 5, bias=False)
    ones, ties = np.eye(5, dtype=np.float32), np.diag(TIES)
    x, weight = (ties, ones) if of == "value" else (ones, ties)
    layer.weight.assign(Tensor(weight))
    fast = burnish.compile(layer, precision="bf16")
    np.testing.assert_array_equal(fast(Tensor(x)).numpy(), rounded(Tensor(ties)))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_where_it_is(special):
    d = Draw(1)
    x, layer = d.tensor(4, 33), nn.Linear(33, 20)
    x.data[2, 32] = special
    fast = burnish.compile(layer, precision="bf16")(x).numpy()
    np.testing.assert_array_equal(np.isfinite(fast).all(1), [True, True, False, True])
    weight = layer.weight.numpy().copy()
    weight[3] = special
    layer.weight.assign(Tensor(weight))
    fast = burnish.compile(layer, precision="bf16")(d.tensor(4, 33)).numpy()
    np.testing.assert_array_equal(np.isfinite(fast).all(0), np.arange(20) != 3)


def test_parameters_that_are_assigned_are_taken_up():
    d = Draw(2)
    x, layer = d.tensor(9, 24), nn.Linear(24, 40)
    fast = burnish.compile(layer, precision="bf16")
    for _ in range(2):
        layer.weight.assign(d.tensor(40, 24))
        wanted = ops.linear(rounded(x), rounded(layer.weight), wide(layer.bias))
        near(fast(x), wanted)


def test_norms_softmax_and_what_follows_products_stay_float32():
    d = Draw(3)
    x = d.tensor(4, 30)
    for function in (ops.softmax, nn.LayerNorm(30), lambda x: ops.exp(x) * 3):
        plain, fast = (
            burnish.compile(function),
            burnish.compile(function, precision="bf16"),
        )
        np.testing.assert_array_equal(fast(x).numpy(), plain(x).numpy())


def layers(nn, gelu):
    """A stem, a block with a sum, and a head: (N, 3, H, W) -> (N, 10)"""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 32, 7, stride=2, padding=3)
            self.one = nn.Conv2d(32, 32, 3, padding=1)
            self.two = nn.Conv2d(32, 48, 1)
            self.norm = nn.LayerNorm(48)
            self.up, self.down = nn.Linear(48, 192), nn.Linear(192, 48)
            self.head = nn.Linear(48, 10)

        def forward(self, x):
            x = gelu(self.stem(x))
            x = gelu(x + self.one(x))
            x = self.two(x).mean((2, 3))
            return self.head(x + self.down(gelu(self.up(self.norm(x)))))

    return Model()


@pytest.mark.oracle
def test_errors_are_no_larger_than_those_of_autocast():
    import torch

    torch.manual_seed(0)
    theirs, ours = layers(torch.nn, torch.nn.functional.gelu), layers(nn, ops.gelu)
    named = dict(ours.named_tensors())
    for name, value in theirs.state_dict().items():
        named[name].assign(Tensor(value.numpy()))
    x = torch.randn(8, 3, 40, 40)
    with torch.no_grad():
        exact = theirs.double()(x.double()).numpy()
        with torch.autocast("cpu", torch.bfloat16):
            other = theirs.float()(x).float().numpy()
    fast = burnish.compile(ours, precision="bf16")(Tensor(x.numpy())).numpy()
    one, two = (np.sqrt(np.mean((y - exact) ** 2)) for y in (fast, other))
    assert 0 < one <= two


@pytest.mark.oracle
def test_gradients_are_no_further_off_than_those_of_autocast():
    import torch

    torch.manual_seed(0)
    theirs, ours = layers(torch.nn, torch.nn.functional.gelu), layers(nn, ops.gelu)
    named = dict(ours.named_tensors())
    for name, value in theirs.state_dict().items():
        named[name].assign(Tensor(value.numpy()))
    ours = ours.to("cpu:autodiff")
    x, y = torch.randn(8, 3, 40, 40), torch.randint(0, 10, (8,))

    def gradients(x, dtype, is_mixed):
        model = copy.deepcopy(theirs).to(dtype)
        with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):
            loss = torch.nn.functional.cross_entropy(model(x.to(dtype)), y)
        loss.backward()
        return [p.grad.numpy() for p in model.parameters()]

    @functools.partial(burnish.compile, precision="bf16")
    def step(x, y):
        found = nn.cross_entropy(ours(x), y).backward()
        optim.SGD().step(0.0, ours, found)
        held = dict(ours.named_tensors())
        return [held[name].grad(found) for name, _ in theirs.named_parameters()]

    given = Tensor(x.numpy()), Tensor(y.numpy())
    step(*given)
    fast = step(*given)
    assert "one plan" in step.explain()
    assert "bf16" in step.explain()
    exact = gradients(x, torch.float64, False)
    for one, two, true in zip(
        fast, gradients(x, torch.float32, True), exact, strict=True
    ):
        off, other = (np.linalg.norm(each - true) for each in (one.numpy(), two))
        assert 0 < off <= other


@pytest.mark.parametrize("rows", [1, 5, 64, 300])
@pytest.mark.parametrize(("ins", "outs"), [(32, 48), (256, 64), (16, 16)])
def test_gradients_to_the_input_are_products_of_rounded_operands(rows, ins, outs):
    d = Draw(rows)
    first, layer = d.tensor(rows, ins), nn.Linear(ins, outs, bias=False)
    held = nn.Sequential(nn.Linear(4, ins), layer).to("cpu:autodiff")
    factor = d.tensor(rows, outs)
    held[0].bias.assign(Tensor(first.data[0]))

    @functools.partial(burnish.compile, precision="bf16")
    def step(x, factor):
        found = (held(x) * factor).sum().backward()
        optim.SGD().step(0.0, held, found)
        return held[0].bias.grad(found)

    x = d.tensor(rows, 4)
    step(x, factor)
    made = step(x, factor)
    weight = rounded(held[1].weight.detach())
    near(made, (rounded(factor) @ weight).sum(0), 2e-5)


@pytest.mark.parametrize("rows", [1, 15, 16, 33, 300])
@pytest.mark.parametrize(("ins", "outs"), [(32, 48), (256, 64), (13, 37)])
def test_gradients_of_weights_are_products_of_rounded_operands(rows, ins, outs):
    """Of a few rows they are those of the operands as they are."""
    d = Draw(rows)
    layer = nn.Linear(ins, outs).to("cpu:autodiff")

    @functools.partial(burnish.compile, precision="bf16")
    def step(x, factor):
        found = (layer(x) * factor).sum().backward()
        optim.SGD().step(0.0, layer, found)
        return layer.weight.grad(found)

    x, factor = d.tensor(rows, ins), d.tensor(rows, outs)
    step(x, factor)
    of = rounded if rows >= 16 else wide
    near(step(x, factor), of(factor).swapaxes(0, 1) @ of(x), 2e-5)


def test_a_learner_trains_in_bf16():
    d = np.random.default_rng(0)
    x = d.standard_normal((256, 3, 12, 12), np.float32)
    batches = data.batches((x, (x.mean((1, 2, 3)) > 0).astype(np.int64)), 32, shuffle=4)

    def trained(compiled):
        burnish.seed(1)
        net = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * 144, 2),
        )
        step = Supervised(nn.CrossEntropyLoss())
        run = Learner(net, optim.SGD(), 0.1, step=step, epochs=4, compile=compiled)
        held = run.fit(batches).named_tensors()
        return np.concatenate([item.detach().numpy().ravel() for _, item in held])

    exact, fast = trained(True), trained("bf16")
    off = np.linalg.norm(fast - exact) / np.linalg.norm(exact)
    assert 0 < off < 0.02
    np.testing.assert_array_equal(trained({"precision": "bf16"}), fast)
