"""Optimizers whose formulas are traced: programs on a CPU, in steps and alone."""

import math
from dataclasses import dataclass, field
from types import ModuleType

import numpy as np
import pytest

from burnish import optim
from burnish.backend import namespace
from burnish.kernels import direct
from burnish.kernels.records import FORMULA
from burnish.optim.rules.elementwise import Elementwise
from burnish.optim.rules.formula import traced

from .test_updates import Trained, batch, same

PEERS = {
    "Adamax": {"weight_decay": 0.1},
    "NAdam": {"weight_decay": 0.1, "decoupled_weight_decay": True},
    "RAdam": {"betas": (0.9, 0.9)},
    "RMSprop": {"alpha": 0.5, "momentum": 0.5, "weight_decay": 0.1},
    "Adagrad": {"lr_decay": 0.1, "initial_accumulator_value": 0.1},
    "Adadelta": {"weight_decay": 0.1},
    "Rprop": {},
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", PEERS)
def test_the_weights_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    made = Trained(lambda: getattr(optim, name)(**PEERS[name]))
    layers = torch.nn.Linear(20, 33), torch.nn.ReLU(), torch.nn.Linear(33, 5)
    peer = torch.nn.Sequential(*layers)
    names = dict(peer.named_parameters())
    with torch.no_grad():
        for path, array in made.weights.items():
            names[path].copy_(torch.tensor(array))
    rule = getattr(torch.optim, name)(peer.parameters(), lr=0.01, **PEERS[name])
    for i in range(8):
        x, labels = batch(i)
        made.step(x, labels, 0.01)
        rule.zero_grad()
        found = peer(torch.tensor(x.numpy()))
        wanted = torch.tensor(labels.numpy())
        torch.nn.functional.cross_entropy(found, wanted).backward()
        rule.step()
    assert "stepped" not in made.step.explain()
    for path, array in made.weights.items():
        wanted = names[path].detach().numpy()
        np.testing.assert_allclose(array, wanted, rtol=2e-4, atol=2e-5, err_msg=path)


@dataclass(eq=False, kw_only=True)
class Bounded(Elementwise):
    """A rule of a user: steps of at most a size, and none against a mask."""

    until: int = 100

    def slots(self):
        return ("sum",)

    def write(self, new, weight, grad, state, rate):
        xp = namespace(weight)
        state["sum"] *= 0.5
        state["sum"] += grad
        change = xp.where(xp.isnan(grad), 0, xp.clip(state["sum"], -0.3, 0.3))
        change = xp.copysign(change, grad) if state["step"] > self.until else change
        new[...] = weight - rate * change


RULES = {
    **{name: getattr(optim, name)(**options) for name, options in PEERS.items()},
    "SGD": optim.SGD(momentum=0.9, nesterov=True),
    "AdamW": optim.AdamW(cautious_weight_decay=True, amsgrad=True),
    "Adan": optim.Adan(weight_decay=0.1),
    "Bounded": Bounded(),
}


@pytest.mark.parametrize("until", [100, 3, 0])
def test_a_rule_of_a_user(until):
    """No record copies a sign: such a step is one of NumPy's."""
    fast, plain = (Trained(lambda: Bounded(until=until), planned=p) for p in (1, 0))
    for i in range(6):
        fast.step(*batch(i), 0.05), plain.step(*batch(i), 0.05)
        same(plain, fast)
        assert ("stepped" in fast.step.explain()) is (i >= until)


def ordered(value):
    try:
        return value >= 0
    except TypeError:  # it is complex
        return False


FACTORS = {
    "power": lambda step, rate: rate * 0.9**step,
    "root": lambda step, rate: (rate / (1 + step)) ** 0.5,
    "branch": lambda step, rate: rate if step < 3 else -abs(rate) / step,
    "math": lambda step, rate: rate * math.sqrt(step),
    "list": lambda step, rate: rate * [3, 1, 2][step % 3],
    "round": lambda step, rate: rate * round(step / 2),
    "numpy": lambda step, rate: np.float64(0.5) ** step * rate + np.sqrt(rate),
    "complex": lambda step, rate: abs((0.07 - rate) ** 0.5) * rate,
    "compared": lambda step, rate: rate if ordered((0.07 - rate) ** 0.5) else 0.2,
    "smallest": lambda step, rate: min(rate, 1 / step) // 0.01 * 0.01,
}


@pytest.mark.parametrize("factor", FACTORS)
def test_numbers_of_a_formula_follow_step_rate_and_options(factor):
    class Rule(Elementwise):
        share = 1.0

        def write(self, new, weight, grad, state, rate):
            made = self.share * FACTORS[factor](state["step"], rate)
            new[...] = weight - made * grad

    rules = []
    trained = [
        Trained(lambda: rules.append(Rule()) or rules[-1], planned=p) for p in (1, 0)
    ]
    for i in range(8):
        for rule, each in zip(rules, trained, strict=True):
            rule.share = 0.5 if i > 5 else 1.0
            each.step(*batch(i), 0.05 + 0.01 * i)
        same(*reversed(trained))


HELD = {
    "shown": lambda: field(default=1.0, init=False),
    "hidden": lambda: field(default=1.0, init=False, repr=False),
    "list": lambda: field(default_factory=lambda: [1.0], init=False),
}


@pytest.mark.parametrize("held", HELD)
def test_options_that_no_constructor_takes_are_followed(held):
    @dataclass(eq=False, kw_only=True)
    class Rule(Elementwise):
        share: object = HELD[held]()

        def write(self, new, weight, grad, state, rate):
            share = self.share[0] if held == "list" else self.share
            new[...] = weight - share * rate * grad

    rules = []
    trained = [
        Trained(lambda: rules.append(Rule()) or rules[-1], planned=p) for p in (1, 0)
    ]
    for i in range(4):
        for rule, each in zip(rules, trained, strict=True):
            rule.share = [0.5**i] if held == "list" else 0.5**i
            each.step(*batch(i), 0.1)
        same(*reversed(trained))


SHARE, SHARES, SETTING = 1.0, {"share": 1.0}, ModuleType("setting")
SETTING.inner = ModuleType("setting.inner")
exec("def read():\n    return share", vars(SETTING))


def shared():
    return SHARE


class OfGlobal(Elementwise):
    def write(self, new, weight, grad, state, rate):
        new[...] = weight - rate * SHARE * grad


class OfFunction(Elementwise):
    @property
    def share(self):
        return shared()

    def write(self, new, weight, grad, state, rate):
        new[...] = weight - rate * self.share * grad


class OfDict(Elementwise):
    def write(self, new, weight, grad, state, rate):
        new[...] = weight - rate * SHARES["share"] * grad


class OfModule(Elementwise):
    def write(self, new, weight, grad, state, rate):
        new[...] = weight - rate * SETTING.share * grad


class Called:
    share = 1.0

    def __call__(self):
        return self.share


CALLED, NEWEST = Called(), None


def written(change):
    """A rule whose formula takes what `change()` gives of a gradient."""

    class Rule(Elementwise):
        def write(self, new, weight, grad, state, rate):
            new[...] = weight - rate * change() * grad

    return Rule


OfInnerModule = written(lambda: SETTING.inner.share)
OfOtherFile = written(lambda: SETTING.read())
OfClass = written(lambda: Called.share)
OfObject = written(CALLED)
OfDefault = written(lambda held=SHARES: held["share"])
OfNewFunction = written(lambda: NEWEST())


def of_closure(share):
    class Rule(Elementwise):
        def write(self, new, weight, grad, state, rate):
            new[...] = weight - rate * share * grad

    def change(value):
        nonlocal share
        share = value

    return Rule, change


@pytest.mark.parametrize(
    "kind",
    [
        *(OfGlobal, OfFunction, OfDict, OfModule, of_closure, OfInnerModule),
        *(OfOtherFile, OfClass, OfObject, OfDefault, OfNewFunction),
    ],
)
@pytest.mark.parametrize("planned", [True, False])
def test_what_a_formula_reads_elsewhere_is_followed(kind, planned, monkeypatch):
    monkeypatch.setattr(SETTING, "share", 1.0, raising=False)
    kind, change = of_closure(1.0) if kind is of_closure else (kind, None)
    made, plain = Trained(kind, planned=planned), Trained(optim.SGD, planned=False)
    for i, value in enumerate((1.0, 1.0, 0.5, 0.25)):
        monkeypatch.setattr(f"{__name__}.SHARE", value)
        monkeypatch.setitem(SHARES, "share", value)
        monkeypatch.setattr(SETTING, "share", value)
        monkeypatch.setattr(SETTING.inner, "share", value, raising=False)
        monkeypatch.setattr(Called, "share", value)
        monkeypatch.setattr(f"{__name__}.NEWEST", lambda value=value: value)
        if change is not None:
            change(value)
        made.step(*batch(i), 0.1), plain.step(*batch(i), 0.1 * value)
        same(plain, made)
    assert not planned or "stepped" not in made.step.explain()


GENERATOR = np.random.default_rng(0)


class Random(Elementwise):
    def write(self, new, weight, grad, state, rate):
        new[...] = weight - rate * GENERATOR.random() + 0 * grad


@pytest.mark.parametrize("planned", [True, False])
def test_random_numbers_of_a_rule_are_drawn_for_each_parameter(planned):
    made, changes = Trained(Random, planned=planned), set()
    for i in range(3):
        before = {name: array.copy() for name, array in made.weights.items()}
        made.step(*batch(i), 0.5)
        changes |= {
            round(float((before[name] - array).mean()), 5)
            for name, array in made.weights.items()
        }
    assert len(changes) == 3 * len(made.weights)


@dataclass(eq=False, kw_only=True)
class Branching(Elementwise):
    """No record copies a sign."""

    def write(self, new, weight, grad, state, rate):
        xp = namespace(weight)
        new[...] = weight - rate * (xp.copysign(0.1, grad) if rate > 0.1 else grad)


def test_a_rate_at_which_a_formula_is_no_program():
    fast, plain = (Trained(Branching, planned=planned) for planned in (True, False))
    for i, rate in enumerate((0.05, 0.2, 0.2, 0.05)):
        fast.step(*batch(i), rate), plain.step(*batch(i), rate)
        same(plain, fast)
    assert "stepped" not in fast.step.explain()


@pytest.mark.parametrize("name", sorted(PEERS.keys() - {"NAdam"}))
def test_a_formula_is_not_traced_for_each_step(name, monkeypatch):
    kind, calls = getattr(optim, name), []
    write = kind.write
    monkeypatch.setattr(kind, "write", lambda *a: (calls.append(1), write(*a)))
    made = Trained(lambda: kind(**PEERS[name]))
    for i in range(8):
        made.step(*batch(i), 0.01)
    known = len(calls)
    for i in range(8):
        made.step(*batch(i), 0.02 / (1 + i))
    assert len(calls) == known


def counted(state):
    state["rounds"] = state.get("rounds", 0) + 1
    return state["rounds"]


OTHERS = {
    "a number of its own": lambda weight, grad, state: counted(state) * grad,
    "numpy": lambda weight, grad, state: np.sqrt(np.abs(grad)),
    "a sum": lambda weight, grad, state: grad / np.sum(grad**2),
    "a mean": lambda weight, grad, state: np.mean(grad) + 0 * grad,
    "a part": lambda weight, grad, state: grad - grad[..., :1],
    "a norm": lambda weight, grad, state: grad / np.linalg.norm(grad),
    "a condition": lambda weight, grad, state: grad if (grad > 1).any() else 2 * grad,
}


@pytest.mark.parametrize("change", OTHERS)
def test_rules_that_are_no_formulas_run_as_they_are(change):
    class Rule(Elementwise):
        def write(self, new, weight, grad, state, rate):
            new[...] = weight - rate * OTHERS[change](weight, grad, state)

    class Plain(optim.Optimizer):
        def update(self, weight, grad, state, rate):
            return weight - rate * OTHERS[change](weight, grad, state)

    assert traced(Rule().write, (), 1, 0.1) is None
    fast, plain = Trained(Rule), Trained(Plain, planned=False)
    for i in range(3):
        fast.step(*batch(i), 0.05), plain.step(*batch(i), 0.05)
    same(plain, fast)


def test_a_formula_that_is_too_long():
    def long(new, weight, grad, state, rate):
        made = [grad * 2 for _ in range(FORMULA["registers"])]
        new[...] = sum(made, start=weight)

    assert traced(long, (), 1, 0.1) is None


@pytest.mark.parametrize("rule", [optim.Adan, optim.RMSprop])
def test_eager_steps_are_records_too(rule, monkeypatch):
    calls, run = [], direct.run
    monkeypatch.setattr(direct, "run", lambda *a: (calls.append(a[0]), run(*a)))
    Trained(rule, planned=False).run(2)
    assert calls == ["formula", "formula"]
