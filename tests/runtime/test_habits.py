"""PyTorch's and NumPy's names that are others here: one line that says which."""

from __future__ import annotations

import re
from pkgutil import iter_modules
from typing import Any

import numpy as np
import pytest

import burnish
from burnish import Tensor, data, nn, ops, optim
from burnish.backend import Device
from burnish.errors import BurnishError
from burnish.habits.meant import MEANT

MODULES = {
    module.name
    for package in (burnish, ops)
    for module in iter_modules(package.__path__, f"{package.__name__}.")
}
"""Their names are there once they are imported."""

OWNERS: dict[str, Any] = {
    "Tensor": Tensor(np.ones((2, 3), np.float32)),
    "burnish.ops": ops,
    "Module": nn.Linear(3, 2),
    "Optimizer": optim.Adam(),
    "burnish.nn": nn,
    "burnish.nn.init": nn.init,
    "burnish.optim": optim,
    "burnish.data": data,
    "burnish": burnish,
}
ROWS = [
    (owner, name)
    for owner, table in MEANT.items()
    for name in table
    if f"{owner}.{name}" not in MODULES
]


@pytest.mark.parametrize(("owner", "name"), ROWS)
def test_a_name_that_is_another_here(owner, name):
    instead = MEANT[owner][name]
    with pytest.raises(AttributeError, match=re.escape(f"write {instead}")):
        getattr(OWNERS[owner], name)


@pytest.mark.parametrize(("owner", "name"), ROWS)
def test_what_is_to_be_written_exists(owner, name):
    """Every `ops.name`, `nn.Name`, `optim.Name` and `x.method` of an advice."""
    homes = {"ops": ops, "nn": nn, "optim": optim, "data": data, "x": OWNERS["Tensor"]}
    homes |= {"model": OWNERS["Module"], "optimizer": OWNERS["Optimizer"]}
    advice = re.sub(r'".*?"', "", MEANT[owner][name])
    for home, word in re.findall(r"\b(ops|nn|optim|x|model|optimizer)\.(\w+)", advice):
        assert hasattr(homes[home], word), f"{home}.{word}"


@pytest.mark.oracle
def test_pytorchs_methods_in_place_lead_to_methods_that_exist():
    torch = pytest.importorskip("torch")
    names = [n for n in dir(torch.Tensor) if n.endswith("_") and not n.startswith("_")]
    for name in names:
        with pytest.raises(
            AttributeError, match="never change in place; write "
        ) as got:
            getattr(OWNERS["Tensor"], name)
        for word in re.findall(r"\bx\.(\w+)\(", str(got.value)):
            assert callable(getattr(Tensor, word)), name
        for word in re.findall(r"\bTensor\.(\w+)\(", str(got.value)):
            assert callable(getattr(Tensor, word)), name


@pytest.mark.parametrize(
    ("owner", "name", "instead"),
    [
        ("Tensor", "gelu", "ops.gelu(x)"),
        ("burnish", "relu", "ops.relu"),
        ("burnish", "Linear", "nn.Linear"),
        ("burnish", "AdamW", "optim.AdamW"),
        ("burnish", "DataLoader", "data.DataLoader"),
        ("burnish.ops", "cross_entropy", "nn.cross_entropy"),
        ("burnish.nn", "Adam", "optim.Adam"),
        ("burnish.nn", "relu", "ops.relu"),
        ("burnish.optim", "LSTM", "nn.LSTM"),
    ],
)
def test_a_name_that_another_package_has(owner, name, instead):
    with pytest.raises(AttributeError, match=re.escape(f"write {instead}") + "$"):
        getattr(OWNERS[owner], name)


def linear() -> nn.Linear:
    return nn.Linear(3, 2).to("cpu:autodiff")


class Smaller(nn.Conv1d):
    """A layer of a user's own, whose constructor forgets an argument of its base."""

    def __init__(self, size=3):
        super().__init__(size, size)


def loss() -> Tensor:
    return linear()(Tensor.ones(4, 3)).sum()


@pytest.mark.parametrize(
    ("habit", "instead"),
    [
        (lambda: Tensor.ones(2, 3).size(), "x.shape"),
        (lambda: Tensor.ones(2, 3).size(0), r"x.shape\[0\]"),
        (lambda: Tensor.ones(2, 3).sum(dim=1), "axis"),
        (lambda: Tensor.ones(2, 3).sum(1, keepdim=True), "keepdims"),
        (lambda: ops.softmax(Tensor.ones(2, 3), dim=1), "axis"),
        (lambda: Tensor([1, 2]).one_hot(3, dim=1), "write axis= for dim="),
        (lambda: ops.one_hot(Tensor([1, 2]), 3, dim=1), "write axis= for dim="),
        (lambda: ops.set_item(Tensor.ones(2), 0, dim=1), "write index= for dim="),
        (lambda: Tensor.ones(2).set_item(0, 1, dim=1), "write index= for dim="),
        (lambda: ops.transpose(Tensor.ones(2, 3), dims=(1, 0)), "axes= for dims="),
        (lambda: ops.relu(Tensor.ones(2), dim=1), r"argument 'dim'$"),
        (lambda: Tensor.ones(2, 3).relu_(), r"x = x.relu\(...\)"),
        (lambda: optim.Adam(linear().parameters()), "optimizer.step|no parameters"),
        (lambda: optim.Adam(lr=1e-3), "step"),
        (lambda: optim.Adam().step(), "step"),
        (lambda: optim.Adam(1e-3), "options have names; the learning rate .* for step"),
        (lambda: optim.SGD(0.1, 0.9), "0.1 in order; .* the learning rate"),
        (lambda: optim.LBFGS(1.0), "the learning rate and the module are for step"),
        (lambda: optim.LBFGS(linear().parameters()), "got parameters"),
        (lambda: burnish.tensor([1.0]), r"write Tensor\(data\)"),
        (lambda: ops.concat(loss(), loss()), "expected a list of arrays"),
        (lambda: ops.concat(Tensor.ones(2), Tensor.ones(2)), "arrays one by one"),
        (lambda: ops.stack(Tensor.ones(2), Tensor.ones(2)), r"as stack\(\[x, y\]"),
        (lambda: ops.relu(), "relu: missing a required argument: 'x'"),
        (lambda: ops.matmul(Tensor.ones(2)), "matmul: missing .* 'b'"),
        (lambda: ops.dropout(Tensor.ones(2), 0.5, training=True), "autodiff device"),
        (lambda: Tensor([[1], [1, 2]]), "Tensor: expected lists of equal lengths"),
        (
            lambda: nn.cross_entropy(Tensor.ones(2, 3), target=Tensor([0, 1])),
            "write targets= for target=",
        ),
        (
            lambda: nn.MSELoss()(input=Tensor.ones(2), target=Tensor.ones(2)),
            "write predictions= for input=, targets= for target=",
        ),
        (lambda: optim.Adam().step(loss()), "step"),
        (lambda: optim.Adam().step(1e-3, linear()), r"'gradients'; write .*backward"),
        (lambda: optim.Adam(beta=0.9), r"'beta'; write Adam\(\*, clip=None, .*betas="),
        (lambda: nn.Conv2d(3, 8), r"^Conv2d: .*'kernel_size'; write Conv2d\(in_chan"),
        (
            lambda: nn.TransformerEncoder(d_model=8),  # whose lists are kept too
            r"^TransformerEncoder: .*'encoder_layer'; write TransformerEncoder\(",
        ),
        (lambda: nn.Conv2d(3, 8, 3, pad=1), r"^Conv2d: .*'pad'; .* padding=0"),
        (
            lambda: nn.BatchNorm2d(),
            r"^BatchNorm2d: .*'num_features'; write BatchNorm2d",
        ),
        (lambda: nn.MSELoss(size_average=True), r"MSELoss\(reduction='mean'\)"),
        (lambda: Smaller(kernel=3), r"^Smaller: .*'kernel'; write Smaller\(size=3\)"),
        (lambda: Smaller(), r"^Conv1d: missing .* 'kernel_size'"),
        (lambda: nn.Conv2d(3, 8, 3)(), "^Conv2d: missing a required argument: 'x'"),
        (lambda: linear()(input=Tensor.ones(4, 3)), "write x= for input="),
        (lambda: linear().train(False), r"write .*model.valid\(\) for inference"),
        (lambda: Tensor.ones(2).to("cpu", "float16"), "one after the other"),
        (lambda: Tensor.ones(2).to(device="cpu"), "one after the other"),
        (lambda: Tensor.ones(2).var(unbiased=True), "write correction= for unbiased="),
        (lambda: np.sum(Tensor.ones(2)), r"write x.sum\(\), or give NumPy x.numpy"),
        (lambda: Tensor(None), "^Tensor: expected NumPy's numbers .* got None"),
        (lambda: Tensor([1.0, None]), "^Tensor: expected NumPy's numbers .* got None"),
        (lambda: Tensor({"a": 1}), "^Tensor: expected NumPy's numbers .* got {'a': 1}"),
    ],
)
def test_a_call_in_pytorchs_way(habit, instead):
    with pytest.raises((BurnishError, TypeError, AttributeError), match=instead):
        habit()


def test_a_wrong_call_is_named_where_programs_use_several_gpus(monkeypatch):
    monkeypatch.setattr(Device, "is_several", True)
    with pytest.raises(BurnishError, match="write x= for input="):
        nn.Linear(3, 2)(input=Tensor.ones(1, 3))


ASSIGNED = {  # what PyTorch's users assign, and what they are to write
    "x.requires_grad = True": "write x = x.require_grad()",
    "model.weight.requires_grad = False": "model.freeze()",
    "x.grad = None": "write gradients = loss.backward()",
    "model.training = False": "model.valid() for inference",
}


@pytest.mark.parametrize("line", ASSIGNED)
def test_what_is_only_read_says_what_to_write(line):
    known = {"x": Tensor(np.ones(3)), "model": nn.Linear(3, 2)}
    with pytest.raises(AttributeError, match=re.escape(ASSIGNED[line])):
        exec(line, known)


CALLED = {  # a call as PyTorch has it, and what is to be written
    "model.num_params()": "write model.num_params",
    "model.parameters(recurse=True)": "write model.parameters()",
    'model.to(dtype="float16")': "tensor.half()",
    "x.size(dim=1)": "write x.shape[1]",
    "Tensor([1.0], requires_grad=True)": "x.require_grad()",
    "Tensor(2, 3)": "Tensor.zeros(2, 3)",
    "nn.ReLU(inplace=True)": "write ReLU()",
    "data.DataLoader([1], 1, pin_memory=True)": "write DataLoader(dataset, 32",
}


@pytest.mark.parametrize("line", CALLED)
def test_a_call_as_pytorch_has_it_says_what_to_write(line):
    known = {"x": OWNERS["Tensor"], "model": OWNERS["Module"], "Tensor": Tensor}
    with pytest.raises(BurnishError, match=re.escape(CALLED[line])):
        eval(line, known | {"nn": nn, "data": data})


def test_what_is_fixed_is_read_as_before():
    x = Tensor(np.ones(3)).to("cpu:autodiff").require_grad()
    assert x.requires_grad
    np.testing.assert_array_equal(x.grad((x * 2).sum().backward()), np.full(3, 2))
    assert isinstance(Tensor.requires_grad, property)
    assert (Tensor.grad.__doc__ or "").startswith("This tensor's gradient")
    assert nn.Linear(3, 2).num_params + 1 == 9
