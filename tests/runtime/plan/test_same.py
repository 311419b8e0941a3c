"""Objects that are compared before each run, and what has to be noticed there."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn
from burnish.kernels import library, same
from burnish.kernels.direct import address
from burnish.kernels.records import VOTES, packed, reference
from burnish.nn.core.param import Stored
from tests.runtime.capture.test_capture import CHANGES
from tests.runtime.plan.checks import same as equal


@pytest.fixture(params=["library", "Python"])
def looks(request, monkeypatch):
    """Who compares: the library, or Python where none is loaded."""
    if request.param == "Python":
        monkeypatch.setattr(same, "loaded", lambda: None)
    elif library() is None:
        pytest.skip("there is no C compiler")


class Owner:
    __slots__ = ("one", "two")

    def __init__(self):
        self.one, self.two = object(), None


DIFFERENT = {
    "a value": lambda d, i, o: d.update(a=1.5),
    "an equal value": lambda d, i, o: d.update(a=float("1000.0")),
    "one more": lambda d, i, o: d.update(c=None),
    "one less": lambda d, i, o: d.pop("b"),
    "none left": lambda d, i, o: d.clear(),
    "another order": lambda d, i, o: d.update(a=d.pop("a")),
    "an item": lambda d, i, o: i.__setitem__(1, 4),
    "an item more": lambda d, i, o: i.append(1),
    "an item less": lambda d, i, o: i.pop(),
    "no items": lambda d, i, o: i.clear(),
    "items in another order": lambda d, i, o: i.reverse(),
    "an attribute": lambda d, i, o: setattr(o, "one", object()),
    "the last attribute": lambda d, i, o: setattr(o, "two", 0),
}


@pytest.mark.parametrize("change", DIFFERENT.values(), ids=DIFFERENT)
def test_each_difference_is_reported(looks, change):
    holder, items, owner = {"a": 1000.0, "b": 2}, [1, 2, 3], Owner()
    is_same = same.Same([holder, (1, 2), items], [Owner(), owner], ("one", "two"))
    assert is_same()
    assert is_same()
    change(holder, items, owner)
    assert not is_same()


def test_an_attribute_that_is_gone_is_reported():
    owner = Owner()
    if library() is None:
        pytest.skip("there is no C compiler")
    is_same = same.Same([], [owner], ("one",))
    del owner.one
    assert not is_same()


class Unslotted:
    pass


class Asked(Owner):
    """Whose attributes are not what its slots hold."""

    __slots__ = ("answer",)

    def __getattribute__(self, name):
        return object.__getattribute__(self, "answer" if name == "one" else name)


def test_slots_and_other_attributes_are_looked_at(looks):
    asked, plain = Asked.__new__(Asked), Unslotted()
    asked.answer, asked.two, plain.one, plain.two = object(), None, object(), None
    owners = [Owner(), plain, asked, nn.Param(np.zeros(2))]
    is_same = same.Same([], owners[:3], ("one", "two"))
    is_loaded = same.Same([], owners[3:], ("trainable", "device"))
    assert is_same()
    assert is_loaded()
    Owner.one.__set__(asked, 7)
    assert is_same()
    asked.answer = object()
    owners[3].trainable = False
    assert not is_same()
    assert not is_loaded()


def test_nothing_is_always_the_same(looks):
    assert same.Same([], [], ())()
    assert same.Same([{}, []], [], ("one",))()


def test_a_copy_looks_at_its_own(looks):
    holder = {"a": [1]}
    is_same = same.Same([holder, holder["a"]], [], ())
    other = copy.deepcopy(is_same)
    holder["a"].append(2)
    assert not is_same()
    assert other()


@pytest.mark.parametrize("part", [0, 1, 2])
def test_records_run_only_while_all_is_the_same(looks, part):
    kernels = library()
    if kernels is None:
        pytest.skip("there is no C compiler")
    total, out = np.array([6.0, 0.0]), np.zeros(1)
    table = np.array([address(total), address(out)], np.int64)
    ends = {"space": reference(0), "out": reference(1), "rows": 1, "outputs": 1}
    how = {"groups": 1, "how": VOTES["sum"], "divisor": 2, "is_double": 1}
    record = np.frombuffer(packed("votes", 1, **ends, **how), np.uint8)
    held = [[1, 2], {"a": 3}, [4]]
    parts = [same.Same([each], [], ()) for each in held]
    run = same.guarded(parts, kernels, address(record), 1, 1)
    assert run(address(table))
    assert list(out) == [3]
    out[:] = 7
    held[part].clear()
    assert not run(address(table))
    assert list(out) == [7]


class Moved(nn.Module):
    def forward(self, x):
        return x + 1


class Stack(nn.Module):
    def __init__(self):
        self.layers = [nn.Linear(3, 4), nn.Dropout(0.5)]

    def __getitem__(self, place):
        return self.layers[place]

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


MORE = [
    ("values", lambda net: net[0].weight.assign(net[0].weight.numpy() * 2)),
    ("data", lambda net: setattr(net[0].weight, "data", net[0].weight.numpy() * 2)),
    ("an array", lambda net: setattr(net[0], "weight", np.ones((4, 3), np.float32))),
    ("a state", lambda net: net.load_state_dict(_more(net.state_dict()))),
    ("what inputs go through", lambda net: setattr(net[0], "on_input", Moved())),
    ("attributes by name", lambda net: vars(net[0]).update(forward=lambda x: x * 2)),
    ("a layer in place", lambda net: net.layers.__setitem__(1, nn.ReLU())),
    ("layers", lambda net: net.layers.append(nn.Tanh())),
    ("adapters", lambda net: net.apply_lora(2)),
    ("a frozen one", lambda net: net.freeze()),
]


def _more(state):
    return {name: array + 1 for name, array in state.items()}


@pytest.mark.parametrize(
    "change",
    [change for change, _ in CHANGES] + [change for _, change in MORE],
    ids=[difference_text for _, difference_text in CHANGES]
    + [what for what, _ in MORE],
)
def test_a_compiled_module_that_has_changed(looks, change):
    net = Stack()
    net.to("cpu")
    x = Tensor(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
    fast = burnish.compile(net)
    for _ in range(3):
        equal(fast(x), net(x))
    change(net)
    try:
        net(x)
    except Exception as error:
        with pytest.raises(type(error)):
            fast(x)
        return
    if net[1].device.is_autodiff:  # dropout draws
        assert fast(x).shape == net(x).shape
        return
    for _ in range(3):
        equal(fast(x), net(x))


def test_parameters_are_of_slots():
    """An attribute that is computed would be another object each time."""
    assert {"_value", "_dtype", "trainable"} <= set(Stored.__slots__)
