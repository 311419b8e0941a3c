"""What a compiled function reads besides its arguments, and what changes of it."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn
from burnish.config import Config
from burnish.plan.compiled import Unplanned

X = Tensor(np.ones((2, 3), np.float32))
FACTOR = 2.0
FACTORS = [2.0]
NAMED = {"factor": 2.0}
FILE = ModuleType("file")
FILE.factor = 2.0


class Scale:
    def __init__(self):
        self.factor = 2.0

    def times(self, x):
        return x * self.factor


class Slotted:
    __slots__ = ("factor",)

    def __init__(self):
        self.factor = 2.0


class Shared:
    factor = 2.0


@dataclass
class Settings(Config):
    factor: float = 2.0


class Cyclic(Scale):
    def __init__(self):
        super().__init__()
        self.me = self


class Layer(nn.Module):
    """x times what `read` gives of the module."""

    def __init__(self, held, read):
        self.linear, self.held, self.read = nn.Linear(3, 3), held, read

    def forward(self, x):
        return self.linear(x) * self.read(self.held)


def doubled(x):
    return x * FACTOR


def changed_factor():
    global FACTOR
    FACTOR = 7.0


def changed_function():
    global doubled

    def doubled(x):
        return x * 7


def set_factor(owner):
    owner.factor = 7.0


@pytest.fixture(autouse=True)
def as_before():
    """The globals of this file, and what they hold, as they were."""
    known = dict(globals())
    yield
    FACTORS[:] = [2.0]
    NAMED.update(factor=2.0)
    FILE.factor = Shared.factor = 2.0
    Derived.forward = FORWARD
    if "own" in vars(Derived):
        del Derived.own
    globals().update(known)


class Derived(Layer):
    def forward(self, x):
        return self.linear(x) * getattr(type(self), "own", 2.0)


FORWARD = Derived.forward
GLOBALS = {
    "a number": (lambda x: x * FACTOR, changed_factor),
    "an item of a list": (
        lambda x: x * FACTORS[0],
        lambda: FACTORS.__setitem__(0, 7.0),
    ),
    "items of a list": (lambda x: x * sum(FACTORS), lambda: FACTORS.append(7.0)),
    "an item of a dict": (
        lambda x: x * NAMED["factor"],
        lambda: NAMED.update(factor=7.0),
    ),
    "an attribute of a module": (lambda x: x * FILE.factor, lambda: set_factor(FILE)),
    "an attribute of a class": (
        lambda x: x * Shared.factor,
        lambda: set_factor(Shared),
    ),
    "a number by a function": (lambda x: doubled(x), changed_factor),
    "a function": (lambda x: doubled(x), changed_function),
}


@pytest.mark.parametrize(("function", "change"), GLOBALS.values(), ids=GLOBALS)
def test_globals_are_read_anew_where_they_change(function, change):
    fast = burnish.compile(function)
    first = fast(X)
    np.testing.assert_allclose(fast(X).numpy(), function(X).numpy())
    change()
    np.testing.assert_allclose(fast(X).numpy(), function(X).numpy())
    assert (fast(X).numpy() != first.numpy()).all()


def test_a_global_that_is_defined_later_is_read_anew_too():
    fast = burnish.compile(lambda x: x * LATER)  # noqa: F821
    globals()["LATER"] = 2.0
    assert (fast(X).numpy() == 2).all()
    globals()["LATER"] = 7.0
    assert (fast(X).numpy() == 7).all()
    del globals()["LATER"]


def test_an_attribute_that_is_given_later_is_read_anew_too():
    owner = SimpleNamespace()
    fast = burnish.compile(lambda x: x * owner.factor)
    for factor in (2.0, 7.0):
        owner.factor = factor
        assert (fast(X).numpy() == factor).all()


def of_number():
    factor = 2.0

    def change():
        nonlocal factor
        factor = 7.0

    return (lambda x: x * factor), change


def of(owner):
    return (lambda x: x * owner.factor), lambda: set_factor(owner)


CLOSURES = {
    "a number": of_number,
    "an object": lambda: of(Scale()),
    "an object that holds itself": lambda: of(Cyclic()),
    "slots": lambda: of(Slotted()),
    "a config": lambda: of(Settings()),
    "a namespace": lambda: of(SimpleNamespace(factor=2.0)),
    "a method": lambda: (lambda owner: (owner.times, lambda: set_factor(owner)))(
        Scale()
    ),
}


@pytest.mark.parametrize("made", CLOSURES.values(), ids=CLOSURES)
def test_variables_of_closures_are_read_anew_where_they_change(made):
    function, change = made()
    fast = burnish.compile(function)
    assert (fast(X).numpy() == 2).all()
    change()
    assert (fast(X).numpy() == 7).all()


HELD = {
    "an object": (Scale, lambda held: held.factor, set_factor),
    "an object of an object": (
        lambda: SimpleNamespace(inner=Scale()),
        lambda held: held.inner.factor,
        lambda held: set_factor(held.inner),
    ),
    "an object in a list": (
        lambda: [Scale(), Scale()],
        lambda held: held[1].factor,
        lambda held: set_factor(held[1]),
    ),
    "an attribute of its class": (
        Shared,
        lambda held: held.factor,
        lambda held: set_factor(Shared),
    ),
    "an attribute that hides its class's": (
        Shared,
        lambda held: held.factor,
        set_factor,
    ),
    "an attribute that was not there": (
        Shared,
        lambda held: getattr(held, "own", 2.0),
        lambda held: setattr(held, "own", 7.0),
    ),
    "a set": (
        lambda: {1},
        lambda held: 2.0 if 1 in held else 7.0,
        lambda held: held.symmetric_difference_update((1, 2)),
    ),
    "keys of a dict": (
        lambda: {"a": 1.0},
        lambda held: 2.0 if "a" in held else 7.0,
        lambda held: held.update(b=held.pop("a")),
    ),
}


@pytest.mark.parametrize(("made", "read", "change"), HELD.values(), ids=HELD)
def test_what_a_module_holds_is_read_anew_where_it_changes(made, read, change):
    module = Layer(made(), read)
    fast = burnish.compile(module)
    first = fast(X).numpy()
    change(module.held)
    np.testing.assert_allclose(fast(X).numpy(), first * 3.5, 1e-5)


@pytest.mark.parametrize("name", ["own", "forward"])
def test_a_class_that_changes_is_read_anew(name):
    module = Derived(None, None)
    fast = burnish.compile(module)
    first = fast(X).numpy()
    value = 7.0 if name == "own" else lambda self, x: self.linear(x) * 7
    setattr(Derived, name, value)
    np.testing.assert_allclose(fast(X).numpy(), first * 3.5, 1e-5)


def test_equal_numbers_are_no_change():
    owner = Scale()
    fast = burnish.compile(lambda x: x * owner.factor)
    fast(X)
    plan = fast.planned(X)
    owner.factor = float("2.0")
    fast(X)
    assert fast.planned(X) is plan
    owner.factor = 2
    fast(X)
    assert fast.planned(X) is not plan


def test_attributes_that_nothing_reads_may_change():
    owner = SimpleNamespace(factor=2.0, calls=0)
    fast = burnish.compile(lambda x: x * owner.factor)
    fast(X)
    plan = fast.planned(X)
    owner.calls = 1
    fast(X)
    assert fast.planned(X) is plan


def test_what_changes_in_each_call_is_read_eagerly_in_the_end():
    owner = SimpleNamespace(calls=0)

    def counting(x):
        owner.calls += 1
        return x * owner.calls

    fast = burnish.compile(counting)
    for _ in range(20):
        assert (fast(X).numpy() == owner.calls).all()
    assert isinstance(fast.planned(X), Unplanned)
    assert "change too often" in fast.explain()
    before = owner.calls
    assert (fast(X).numpy() == before + 1).all()
    assert owner.calls == before + 1


def test_a_closure_variable_that_is_deleted_is_missed_as_in_the_plain_call():
    factor = 2.0

    def times(x):
        return x * factor

    fast = burnish.compile(times)
    np.testing.assert_array_equal(fast(X).data, times(X).data)
    del factor
    with pytest.raises(NameError):
        fast(X)
    factor = 3.0
    np.testing.assert_array_equal(fast(X).data, times(X).data)


class Forgetting(dict):
    """A table whose entries leave by themselves, as those of freed arrays do."""

    def __repr__(self):
        self.clear()
        return "a table"

    def __hash__(self):
        return id(self)


def test_entries_that_leave_a_table_while_it_is_looked_at_are_passed_over():
    table = Forgetting()
    table[table], table[1] = [2.0], [3.0]  # to name the first key empties the table

    def doubled(x):
        return x * 2 if table is not None else x

    np.testing.assert_array_equal(burnish.compile(doubled)(X).data, 2 * X.data)
