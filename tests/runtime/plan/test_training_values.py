"""What a planned step reads: scalars, rounded and derived values, modules in lists."""

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops, optim
from burnish.kernels import library
from burnish.lowbit import Level
from burnish.nn.adapters.reparameterize import Reparameterizer

pytestmark = pytest.mark.skipif(library() is None, reason="there is no compiler")


def beside(make_step, steps=3):
    """The results of some steps, planned and plain; make_step: of a fresh model."""
    found = []
    for planned in (True, False):
        burnish.seed(1)
        model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
        step = make_step(model.to("cpu:autodiff"))
        fast = burnish.compile(step) if planned else step
        rng, made = np.random.default_rng(0), []
        for _ in range(steps):
            x = Tensor(rng.normal(size=(8, 16)).astype(np.float32))
            made += [each.item() for each in fast(x, Tensor(rng.integers(0, 4, 8)))]
        if planned:
            assert "one plan" in fast.explain(), fast.explain()
        found.append(made)
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "loss",
    [
        lambda y, t: nn.nll_loss(ops.log_softmax(y, axis=-1), t),
        lambda y, t: nn.cross_entropy(y, t, label_smoothing=0.1),
        lambda y, t: nn.cross_entropy(y, t, weight=Tensor(np.float32([1, 2, 3, 4]))),
    ],
    ids=["nll", "smoothed", "weighted"],
)
def test_losses_whose_eager_calls_give_numpy_scalars(loss):
    def make(model):
        optimizer = optim.Adam()

        def step(x, targets):
            made = loss(model(x), targets)
            optimizer.step(1e-2, model, made.backward())
            return [made]

        return step

    beside(make)


@pytest.mark.parametrize(
    "weighed",
    [
        lambda loss, y, by: loss * by + y.square().mean(),
        lambda loss, y, by: loss + by * y.square().mean(),
        lambda loss, y, by: loss - (y / by).square().mean() + (by - y).mean(),
    ],
)
def test_a_number_of_the_call_beside_tensors(weighed):
    """One plan, whatever the number is, as a weight that grows from step to step."""
    found = []
    for planned in (True, False):
        model, rule = nn.Linear(5, 3).to("cpu:autodiff"), optim.SGD()
        model.weight.assign(np.linspace(-1, 1, 15, dtype=np.float32).reshape(3, 5))
        model.bias.assign(np.zeros(3, np.float32))

        def step(x, rate, by, model=model, rule=rule):
            y = model(x)
            loss = weighed(y.abs().sum(), y, by)
            rule.step(rate, model, loss.backward())
            return loss

        call = burnish.compile(step) if planned else step
        x = Tensor(np.linspace(-1, 2, 20, dtype=np.float32).reshape(4, 5))
        made = [call(x, 0.01, by).item() for by in (0.1, 0.2, 0.7)]
        found.append([*made, *np.array(model.weight.data).reshape(-1)])
        if planned:
            assert call.explain().count("one plan") == 1
            assert "nothing eagerly" in call.explain()
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-6)


def test_a_number_of_numpy_makes_results_as_wide():
    """As an eager call's; its plan is none for Python's numbers."""
    model, rule = nn.Linear(5, 3).to("cpu:autodiff"), optim.SGD()

    @burnish.compile
    def step(x, by):
        loss = model(x).abs().sum() * by
        rule.step(0.0, model, loss.backward())
        return loss

    x = Tensor(np.ones((4, 5), np.float32))
    made = [step(x, kind(0.1)).dtype for kind in (np.float64, float, np.float64)]
    assert made == [np.float64, np.float32, np.float64]


def test_a_number_of_the_call_that_python_computes_with():
    """Its plan is for that number alone."""
    model, rule = nn.Linear(5, 3).to("cpu:autodiff"), optim.SGD()

    @burnish.compile
    def step(x, smoothing):
        wanted = Tensor(np.array([0, 1, 2, 1]))
        loss = nn.cross_entropy(model(x), wanted, label_smoothing=smoothing)
        rule.step(0.0, model, loss.backward())
        return loss

    x = Tensor(np.linspace(-1, 2, 20, dtype=np.float32).reshape(4, 5))
    first, other, again = (step(x, each).item() for each in (0.0, 0.5, 0.0))
    assert first == again != other
    assert step.explain().count("one plan") == 2


@pytest.mark.parametrize(
    "weighed",
    [
        lambda loss, by: loss * by if isinstance(by, float) else loss,
        lambda loss, by: loss * {0.5: 3.0}.get(by, 1.0),
    ],
    ids=["its type", "a key"],
)
def test_a_number_of_the_call_is_a_float(weighed):
    found = []
    for planned in (True, False):
        model, rule = nn.Linear(5, 3, bias=False), optim.SGD()
        model = model.to("cpu:autodiff")
        model.weight.assign(np.ones((3, 5), np.float32))

        def step(x, by, model=model, rule=rule):
            loss = weighed(model(x).square().sum(), by)
            rule.step(0.0, model, loss.backward())
            return loss

        call = burnish.compile(step) if planned else step
        x = Tensor(np.ones((4, 5), np.float32))
        found.append([call(x, by).item() for by in (0.5, 0.25, 0.5)])
    np.testing.assert_allclose(*found, rtol=1e-5)


def test_a_rounded_parameter_is_that_of_before_its_update():
    scale = Tensor(np.float32([0.05]))

    def make(model):
        optimizer = optim.Adam()

        def step(x, targets):
            weight = model[0].weight
            blocks = Level.tensor().blocks(weight.shape)
            rounded = ops.fake_quantize(weight, scale, value="q8s", blocks=blocks)
            y = model[2](ops.relu(x @ rounded.swapaxes(0, 1)))
            loss = nn.cross_entropy(y, targets)
            optimizer.step(1e-2, model[0], loss.backward())
            return loss, rounded[0].sum()

        return step

    beside(make)


@pytest.mark.parametrize("hold", [lambda m: [m], lambda m: {"a": (1, m)}])
def test_modules_in_lists_and_dicts_are_found(hold):
    def make(model):
        held, optimizer = hold(model), optim.SGD()

        def step(x, targets):
            module = held[0] if isinstance(held, list) else held["a"][1]
            loss = nn.cross_entropy(module(x), targets)
            optimizer.step(1e-2, module, loss.backward())
            return [loss]

        return step

    beside(make)


def test_names_that_mean_another_module_are_noticed():
    """A closure's name, an entry of a list, and one that is added."""
    first, second, third = (nn.Linear(3, 2).train() for _ in range(3))
    held, optimizer = [first], optim.SGD()
    chosen = first

    @burnish.compile
    def step(x):
        loss = (chosen(x) ** 2).mean() + sum((m(x) ** 2).mean() for m in held)
        changed = loss.backward()
        for module in {id(m): m for m in (chosen, *held)}.values():
            optimizer.step(0.1, module, changed)
        return loss

    def check(*trained):
        x = Tensor(np.ones((2, 3), np.float32))
        before = [np.array(m.weight.data) for m in (first, second, third)]
        for _ in range(2):
            loss = step(x)
        wanted = (chosen(x) ** 2).mean() + sum((m(x) ** 2).mean() for m in held)
        assert wanted.numpy() < loss.numpy()
        for m, was in zip((first, second, third), before, strict=True):
            assert (m in trained) is bool((m.weight.data != was).any())

    check(first)
    held[0] = second
    check(first, second)
    chosen = third
    check(second, third)
    held.append(first)
    check(first, second, third)


def test_a_compiled_function_calls_the_module_that_its_name_means():
    model = nn.Linear(3, 2)
    fast = burnish.compile(lambda x: model(x))
    x = Tensor(np.ones((2, 3), np.float32))
    for _ in range(2):
        np.testing.assert_allclose(fast(x).numpy(), model(x).numpy(), 1e-6)
        model = nn.Linear(3, 2)


class Sized(Reparameterizer):
    """Rows of a length that is learned."""

    def split(self, param):
        size = np.linalg.norm(param.data, axis=1, keepdims=True)
        return {"size": nn.Param(size), "rows": nn.Param(param.data)}

    def value(self, size, rows):
        return rows * size / (rows * rows).sum(axis=1, keepdims=True).sqrt()


def _sized(model):
    model[0].weight = nn.Reparameterized(model[0].weight, Sized())


@pytest.mark.parametrize(
    "change",
    [lambda m: m.apply_lora(4), lambda m: m.apply_qlora(4, block_size=16), _sized],
    ids=["LoRA", "QLoRA", "weight norm"],
)
def test_parameters_that_are_made_of_others(change):
    def make(model):
        change(model)
        optimizer = optim.Adam()

        def step(x, targets):
            loss = nn.cross_entropy(model(x) + model(-x), targets)
            optimizer.step(0.03, model, loss.backward())
            after = model(x).sum()
            return loss, after

        return step

    beside(make)


def test_a_merged_parameter_is_planned_anew():
    burnish.seed(1)
    model = nn.Sequential(nn.Linear(16, 4)).to("cpu:autodiff")
    model[0].weight = nn.Reparameterized(model[0].weight, Sized())
    optimizer = optim.SGD()

    def step(x, targets):
        loss = nn.cross_entropy(model(x), targets)
        optimizer.step(0.1, model, loss.backward())
        return loss

    fast = burnish.compile(step)
    x, targets = Tensor(np.ones((2, 16), np.float32)), Tensor(np.arange(2))
    fast(x, targets)
    fast(x, targets)
    model[0].weight.merge()
    before = np.array(model[0].weight.data)
    wanted = nn.cross_entropy(model(x), targets).item()
    assert abs(fast(x, targets).item() - wanted) < 1e-6
    model[0].weight.unmerge()  # its parts did not train
    np.testing.assert_array_equal(model[0].weight.data, before)


def test_gradients_added_up_within_a_step():
    def make(model):
        optimizer = optim.Adam()

        def step(x, targets):
            sums = optim.GradientsAccumulator()
            for part in (slice(0, 4), slice(4, 8)):
                loss = nn.cross_entropy(model(x[part]), targets[part]) / 2
                found = optim.GradientsParams.from_grads(loss.backward(), model)
                sums.accumulate(found)
            optimizer.step(1e-2, model, sums.grads())
            return [loss]

        return step

    beside(make)
