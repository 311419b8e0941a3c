"""Module: what is inside, copies and devices, how it prints."""

from typing import NamedTuple

import numpy as np
import pytest

from burnish import Device, Tensor, nn
from burnish.nn import init


class Scale(nn.Module):
    """x * factor + shift"""

    def __init__(self, n, made=None):
        made = made if made is not None else init.ones
        self.factor = nn.Param(made, (n,))
        self.shift = nn.Buffer(np.zeros(n, np.float32))

    def forward(self, x):
        return x * self.factor + self.shift


class Pair(NamedTuple):
    one: object
    two: object


class Net(nn.Module):
    """Modules in every kind of container, one parameter in two places."""

    def __init__(self, made=None):
        self.first = Scale(3, made)
        self.blocks = [Scale(3, made), Scale(3, made)]
        self.heads = {"a": Scale(3, made), "b": (Scale(3, made), None)}
        self.pair = Pair(Scale(3, made), "text")
        self.tied = self.first.factor
        self.sizes = (1, 2)

    def forward(self, x):
        return self.blocks[1](self.blocks[0](self.first(x))) * self.tied


PATHS = ["first", "blocks.0", "blocks.1", "heads.a", "heads.b.0", "pair.0"]


def refuse(shape, dtype, device):
    raise AssertionError("a lazy parameter was made")


def test_paths_follow_attributes_and_containers():
    net = Net()
    assert [name for name, _ in net.named_children()] == PATHS
    assert [name for name, _ in net.named_modules()] == ["", *PATHS]
    assert next(name for name, _ in net.named_parameters()) == "tied"
    assert {name for name, _ in net.named_buffers()} == {f"{p}.shift" for p in PATHS}
    assert len(net.parameters()) == 6


def test_a_shared_parameter_counts_once():
    net = Net()
    assert net.num_params == 18
    net.first.factor.assign(np.full(3, 2, np.float32))
    assert net.tied.tolist() == [2, 2, 2]


def test_nothing_lazy_is_made_by_looking():
    net = Net(refuse)
    assert net.num_params == 18
    assert "Scale" in repr(net)
    net.to("cpu:autodiff").freeze().to("cpu")
    assert all(param.is_lazy for param in net.parameters())


def test_a_module_without_forward_says_so():
    with pytest.raises(TypeError, match="Module has no forward method"):
        nn.Module()(1)


def test_visit_and_map():
    net, seen = Net(), []
    net.visit(lambda path, tensor: seen.append((path, tensor.size)))
    assert ("heads.b.0.shift", 3) in seen
    assert len(seen) == 12
    assert net.map(lambda path, tensor: tensor.data + 1) is net
    assert net.first.factor.tolist() == [2, 2, 2]
    assert net.blocks[1].shift.tolist() == [1, 1, 1]


def test_to_moves_in_place_and_decides_about_training():
    net = Net()
    assert net.to("cpu:autodiff") is net
    assert net.training
    assert net.blocks[0].training
    assert net.tied.requires_grad
    assert not net.to(Device("cpu")).training
    assert not net.tied.requires_grad


def test_a_fork_shares_arrays_but_not_tensors():
    net = Net()
    twin = net.fork("cpu:autodiff")
    assert [str(device) for device in twin.devices] == ["cpu:autodiff"]
    assert twin.first.factor.data is net.first.factor.data
    assert twin.tied is twin.first.factor
    assert type(twin.pair) is Pair
    assert twin.sizes == (1, 2)
    twin.tied.assign(np.zeros(3))
    assert net.tied.tolist() == [1, 1, 1]
    assert not net.training


def test_valid_and_train_are_copies():
    net = Net().to("cpu:autodiff")
    loss = net(Tensor([1.0, 2.0, 3.0]))
    assert loss.requires_grad
    valid = net.valid()
    assert not valid(Tensor([1.0, 2.0, 3.0])).requires_grad
    assert net.training
    assert valid.train().training
    assert not valid.training


def test_frozen_parameters_get_no_gradient():
    net = Net().to("cpu:autodiff")
    net.blocks[0].freeze()
    assert not net.blocks[0].factor.requires_grad
    assert net.tied.requires_grad
    x = Tensor([1.0, 2.0, 3.0])
    gradients = net(x).backward(np.ones(3))
    assert gradients.get(net.blocks[0].factor) is None
    assert net.blocks[1].factor.grad(gradients).tolist() == [1, 2, 3]
    assert net.tied.grad(gradients).tolist() == [2, 4, 6]
    assert not net.no_grad()(x).requires_grad
    assert net.unfreeze()(x).requires_grad


def test_frozen_stays_frozen_in_a_copy():
    net = Net()
    net.first.freeze()
    assert not net.train().first.factor.requires_grad


def test_a_module_may_know_its_parent():
    net = Net()
    net.first.parent = net
    assert [name for name, _ in net.named_modules()] == ["", *PATHS]
    assert net.fork("cpu").first.parent is not net
    net.load_state_dict(net.state_dict())


def test_repr_counts_parameters_and_folds_equal_neighbours():
    class MLP(nn.Module):
        def __init__(self):
            self.fc1 = nn.Linear(8, 32)
            self.fc2 = nn.Linear(32, 8, bias=False)

    class Model(nn.Module):
        def __init__(self):
            self.embed = nn.Linear(10, 8, bias=False)
            self.blocks = [MLP(), MLP(), MLP()]
            self.norms = [nn.Linear(1, 1), nn.Linear(1, 2)]
            self.plain = nn.Module()

    assert repr(Model()) == (
        "Model(  # 1,718 params\n"
        "  (embed): Linear(10, 8, bias=False)  # 80 params\n"
        "  (blocks.0-2): 3 x MLP(  # 544 params each\n"
        "    (fc1): Linear(8, 32)  # 288 params\n"
        "    (fc2): Linear(32, 8, bias=False)  # 256 params\n"
        "  )\n"
        "  (norms.0): Linear(1, 1)  # 2 params\n"
        "  (norms.1): Linear(1, 2)  # 4 params\n"
        "  (plain): Module()\n"
        ")"
    )
