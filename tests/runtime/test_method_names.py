"""Methods and optimizers by the names that NumPy and PyTorch have for them."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from burnish import Tensor, nn, ops, optim
from tests.harness.names import agreeing, functions, peers
from tests.runtime.test_names import SHARED as FUNCTIONS
from tests.runtime.test_names import SIGNS, example, same

pytestmark = pytest.mark.oracle
torch = pytest.importorskip("torch")
F = torch.nn.functional

METHODS = sorted(
    name
    for name in dir(Tensor)
    if not name.startswith("_") and callable(getattr(Tensor, name))
)
MAKERS = {
    name
    for name in METHODS
    if isinstance(inspect.getattr_static(Tensor, name), classmethod)
}
EXCEPTIONS = {
    "norm": "one p for vectors, as F.normalize; no matrix norms",
    "diag_embed": "always the last two axes",
    "expand": "sizes one by one or as a tuple; never by name",
    "to": "a device or a dtype, one at a time",
}
"""Methods that neither agrees with, and why."""


def homes(name: str) -> tuple[Any, ...]:
    if name in MAKERS:
        return (np, torch)
    return (np.ndarray, torch.Tensor, np, np.linalg, F, torch, torch.special)


SHARED = [name for name in METHODS if peers(name, *homes(name))]


@pytest.mark.parametrize("name", SHARED)
def test_a_method_takes_what_its_name_says(name):
    agree, report = agreeing(getattr(Tensor, name), peers(name, *homes(name)))
    assert (bool(report) and not agree) == (name in EXCEPTIONS), report


COMPUTED = sorted({*METHODS} & {*FUNCTIONS} - {*SIGNS})
"""Methods that are functions too: `x.sum(0)` is `ops.sum(x, 0)`."""


@pytest.mark.parametrize("name", COMPUTED)
def test_a_method_is_the_function_of_its_name(name):
    x, *rest = example(name)
    method = getattr(Tensor(x), name)(*rest)
    function = getattr(ops, name)(Tensor(x), *rest)
    same(arrays(method), arrays(function))


def arrays(found: Any) -> Any:
    if isinstance(found, tuple):
        return [arrays(part) for part in found]
    return np.asarray(found)


LOSSES = [name for name in functions(nn) if peers(name, F, torch.special)]


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_takes_what_its_name_says(name):
    agree, report = agreeing(getattr(nn, name), peers(name, F, torch.special))
    assert agree or not report, report


NOT_OURS = {"params", "lr", "foreach", "capturable", "differentiable", "fused"}
"""Parameters and rate are arguments of a step; the others choose PyTorch's loops."""

LEFT_OUT = {"Adam": "decoupled_weight_decay"}
"""AdamW is Adam with it."""

RULES = [
    name
    for name in optim.__all__
    if inspect.isclass(getattr(torch.optim, name, None)) and name != "Optimizer"
]


@pytest.mark.parametrize("name", RULES)
def test_an_optimizer_has_pytorchs_options(name):
    ours = inspect.signature(getattr(optim, name)).parameters
    theirs = inspect.signature(getattr(torch.optim, name)).parameters
    for option in theirs.keys() - NOT_OURS - {LEFT_OUT.get(name)}:
        assert option in ours, option
        assert ours[option].default == theirs[option].default, option
