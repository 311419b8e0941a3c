"""Parameters, FLOPs and shapes of PyTorch's models, beside what PyTorch counts."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from burnish.codegen.tools.flops import operator_macs
from burnish.codegen.tools.model_page import look

torch = pytest.importorskip("torch")
torch_exports = pytest.importorskip("tests.harness.torch_exports")
flop_counter = pytest.importorskip("torch.utils.flop_counter")
pytestmark = pytest.mark.oracle


class Bottleneck(torch.nn.Module):
    def __init__(self, width, stride):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(width, width, 1, bias=False)
        self.conv2 = torch.nn.Conv2d(width, width, 3, stride, padding=1, groups=2)
        self.down = torch.nn.Conv2d(width, width, 1, stride)

    def forward(self, x):
        return torch.relu(self.conv2(torch.relu(self.conv1(x))) + self.down(x))


class Images(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 8, 7, stride=2, padding=3)
        self.blocks = torch.nn.Sequential(Bottleneck(8, 1), Bottleneck(8, 2))
        self.up = torch.nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.head = torch.nn.Linear(4, 5)

    def forward(self, images):
        return self.head(self.up(self.blocks(self.stem(images))).mean((2, 3)))


class Words(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(50, 16)
        self.layers = torch.nn.ModuleList(
            torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
            for _ in range(4)
        )
        self.head = torch.nn.Linear(16, 50, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


MODELS = {
    "images": (Images, lambda: torch.randn(2, 3, 32, 32)),
    "words": (Words, lambda: torch.randint(0, 50, (2, 12))),
}


@pytest.fixture(scope="module", params=MODELS)
def exported(request, tmp_path_factory):
    """A model of PyTorch, its input, and the file of its export."""
    make, draw = MODELS[request.param]
    torch.manual_seed(0)
    model, given = make().eval(), draw()
    for each in model.parameters():  # zeros and ones would be left out or shared
        torch.nn.init.normal_(each)
    path = tmp_path_factory.mktemp(request.param) / "model.onnx"
    torch_exports.exported(model, [given], path, dynamo=True, axes=[{}])
    return model, given, path


def by_module(model, given):
    """FLOPs of each module, as PyTorch counts them."""
    with flop_counter.FlopCounterMode(display=False) as counter, torch.no_grad():
        model.train()  # attention in its parts: its fused kernel is not counted
        model(given)
    kind = type(model).__name__
    counts = counter.get_flop_counts()
    return {
        name.removeprefix(kind).removeprefix("."): sum(each.values())
        for name, each in counts.items()
        if name != "Global"
    }


@pytest.mark.parametrize("computed", [True, False])
def test_costs_are_those_that_pytorch_counts(exported, computed, monkeypatch):
    model, given, path = exported
    if not computed:
        module = importlib.import_module("burnish.codegen.tools.model_page.look")
        monkeypatch.setattr(module, "COMPUTED", 0)
    found = look(path)
    assert found.root.parameters == sum(p.numel() for p in model.parameters())
    assert found.root.bytes == sum(p.nbytes for p in model.parameters())
    counted = by_module(model, given)
    assert 2 * found.root.macs == counted[""]
    known = {path for path in found.boxes if path in counted}
    assert len(known) > 4
    assert {path: 2 * found.boxes[path].macs for path in known} == {
        path: counted[path] for path in known
    }


def test_shapes_are_those_that_flow(exported):
    model, given, path = exported
    flowing = {}

    def hook(name):
        def keep(module, inputs, output):
            first = output[0] if isinstance(output, tuple) else output
            flowing[name] = tuple(first.shape)

        return keep

    for name, module in model.named_modules():
        module.register_forward_hook(hook(name))
    model.train()  # each module is called, as it is exported
    with torch.no_grad():
        model(given)
    boxes = look(path).boxes
    known = [name for name in flowing if name in boxes and boxes[name].outputs]
    assert len(known) > 4
    for name in known:
        assert boxes[name].outputs[0].shape == flowing[name]


@pytest.mark.parametrize(
    ("equation", "shapes", "macs"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)], 24),
        ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)], 120),
        ("...ij,...jk", [(5, 2, 3), (1, 3, 4)], 120),
        ("ij->ji", [(2, 3)], 0),
    ],
)
def test_an_equation_is_counted_as_pytorch_does(equation, shapes, macs):
    arrays = [np.zeros(shape, np.float32) for shape in shapes]
    made = np.einsum(equation, *arrays)
    assert operator_macs("einsum_of", arrays, {"equation": equation}, made) == macs
    if len(shapes) > 1:
        with flop_counter.FlopCounterMode(display=False) as counter:
            torch.einsum(equation, *map(torch.from_numpy, arrays))
        assert counter.get_total_flops() == 2 * macs
