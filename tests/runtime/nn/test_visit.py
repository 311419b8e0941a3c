"""Walks over modules: order, places, new values."""

import numpy as np

from burnish import Device, nn
from burnish.nn import init


class Net(nn.Module):
    """A list, a buffer, a boolean, a parameter in two places."""

    def __init__(self):
        self.first = nn.Linear(2, 3, bias=False)
        self.blocks = [nn.Sequential(nn.ReLU(), nn.Linear(3, 3)), nn.BatchNorm1d(3)]
        self.mask = nn.Buffer(np.ones(3, bool))
        self.scales = {"a": nn.Param(init.ones, (3,))}
        self.tied = self.scales["a"]


class Log(nn.ModuleVisitor):
    def __init__(self):
        super().__init__()
        self.lines = []

    def enter_module(self, path, module):
        assert self.modules[-1] is module
        self.lines.append(f"+ {path} {type(module).__name__}")

    def exit_module(self, path, module):
        assert self.modules[-1] is module
        self.lines.append(f"- {path}")

    def visit_float(self, path, tensor):
        owner = type(self.modules[-1]).__name__
        self.lines.append(f"float {path} {owner} {len(self.modules)}")

    def visit_int(self, path, tensor):
        self.lines.append(f"int {path}")

    def visit_bool(self, path, tensor):
        self.lines.append(f"bool {path}")


def test_a_visitor_knows_where_it_is():
    log = Log()
    log.visit(Net())
    assert log.lines == [
        "+  Net",
        "bool mask",
        "float scales.a Net 1",
        "+ first Linear",
        "float first.weight Linear 2",
        "- first",
        "+ blocks.0 Sequential",
        "+ blocks.0.0 ReLU",
        "- blocks.0.0",
        "+ blocks.0.1 Linear",
        "float blocks.0.1.weight Linear 3",
        "float blocks.0.1.bias Linear 3",
        "- blocks.0.1",
        "- blocks.0",
        "+ blocks.1 BatchNorm1d",
        "float blocks.1.weight BatchNorm1d 2",
        "float blocks.1.bias BatchNorm1d 2",
        "float blocks.1.running_mean BatchNorm1d 2",
        "float blocks.1.running_var BatchNorm1d 2",
        "int blocks.1.num_batches_tracked",
        "- blocks.1",
        "- ",
    ]
    assert log.modules == []


def test_a_mapper_changes_what_it_has_methods_for():
    class Linears(nn.ModuleMapper):
        def map_float(self, path, tensor):
            if isinstance(self.modules[-1], nn.Linear):
                return np.full(tensor.shape, 7, np.float32)
            return tensor

        def map_bool(self, path, tensor):
            return ~tensor.data

    net = Net()
    assert Linears().map(net) is net
    assert net.first.weight.numpy().min() == 7
    assert net.blocks[0][1].bias.tolist() == [7, 7, 7]
    assert net.blocks[1].weight.tolist() == [1, 1, 1]
    assert net.mask.tolist() == [False] * 3
    assert net.blocks[1].num_batches_tracked.data == 0


def test_looking_makes_nothing():
    net = Net().to(Device("cpu"))
    nn.ModuleVisitor().visit(net)
    nn.ModuleMapper().map(net)
    assert all(param.is_lazy for param in net.parameters())
