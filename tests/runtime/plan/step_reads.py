"""Steps of training that read numbers in Python, and what changes these."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType, SimpleNamespace

import numpy as np

import burnish
from burnish import Tensor, nn, optim
from burnish.config import Config

FACTOR = 0.5
FACTORS = [0.5]
FILE = ModuleType("file")


class Scale:
    def __init__(self):
        self.factor = 0.5

    def read(self):
        return self.factor


class Shared:
    factor = 0.5


@dataclass
class Settings(Config):
    factor: float = 0.5


def of_global():
    def change(value):
        global FACTOR
        FACTOR = value

    return (lambda: FACTOR), change


def of_items(items, key=0):
    return (lambda: items[key]), lambda value: items.__setitem__(key, value)


def of_variable():
    factor = 0.5

    def change(value):
        nonlocal factor
        factor = value

    return (lambda: factor), change


def of(owner):
    return (lambda: owner.factor), lambda value: setattr(owner, "factor", value)


def of_method():
    owner = Scale()
    return owner.read, lambda value: setattr(owner, "factor", value)


def of_tensor(device):
    """A tensor, which becomes another one."""
    owner = Scale()

    def change(value):
        owner.factor = Tensor(np.float32(value)).to(device)

    return (lambda: owner.factor), change


READS = {
    "a global": lambda _: of_global(),
    "an item of a global": lambda _: of_items(FACTORS),
    "an attribute of a module": lambda _: of(FILE),
    "an attribute of a class": lambda _: of(Shared),
    "a variable": lambda _: of_variable(),
    "an item of a list": lambda _: of_items([0.5]),
    "an item of a dict": lambda _: of_items({"factor": 0.5}, "factor"),
    "an object": lambda _: of(Scale()),
    "a config": lambda _: of(Settings()),
    "a namespace": lambda _: of(SimpleNamespace(factor=0.5)),
    "a method": lambda _: of_method(),
    "a tensor": of_tensor,
}
"""For a device: functions that read a factor, and that change it."""


def constant():
    return 1e-2


class Trained:
    """A layer whose step reads a factor of the loss, and the optimizer's rate."""

    def __init__(self, device, read, rate=constant, precision=None):
        rng = np.random.default_rng(0)
        net, rule = nn.Linear(6, 4).to(f"{device}:autodiff"), optim.AdamW()
        for item in net.parameters():
            item.assign(rng.normal(size=item.shape).astype(np.float32))

        def step(x):
            loss = (net(x) ** 2).mean() * read()
            rule.step(rate(), net, loss.backward())
            return loss

        self.net, self.rule = net, rule
        self.step = burnish.compile(step, precision=precision) if precision else step
        self.x = Tensor(rng.normal(size=(8, 6)).astype(np.float32)).to(device)

    def __call__(self):
        """The loss and the weights after a step."""
        loss = self.step(self.x).item()
        return loss, *[item.numpy() for item in self.net.parameters()]


def follows(device, made, values, near=1e-5):
    """Compare a planned step, whose factor has these values, with the plain one."""
    read, change = made(device)
    rate = constant if made is of_tensor else read
    plain, fast = (Trained(device, read, rate, kind) for kind in (None, "fp32"))
    before = None
    for value in values:
        if value != before:
            change(value)
        before = value
        for one, other in zip(fast(), plain(), strict=True):
            np.testing.assert_allclose(one, other, near, near)
    assert int(fast.rule.state_dict()["weight.step"]) == len(values)
    return fast.step
