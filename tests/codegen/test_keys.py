"""Weights keep the keys that they have in PyTorch, where the graph still tells."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings

import pytest

from burnish.codegen.pipeline import generate

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


class Block(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = torch.nn.LayerNorm(dim)
        self.up = torch.nn.Linear(dim, 2 * dim)
        self.down = torch.nn.Linear(2 * dim, dim, bias=False)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(11, 8)
        self.blocks = torch.nn.ModuleList([Block(8) for _ in range(2)])
        self.lstm = torch.nn.LSTM(8, 6, 2, batch_first=True, bidirectional=True)
        self.head = torch.nn.Sequential(torch.nn.Linear(12, 4), torch.nn.ReLU())

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.lstm(x)[0])


class Picture(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.groups = torch.nn.GroupNorm(2, 8)
        self.act = torch.nn.PReLU(8)
        self.classifier = torch.nn.Linear(8, 5)

    def forward(self, x):
        x = self.act(self.groups(self.stem(x)))
        return self.classifier(x.mean((2, 3)))


@pytest.mark.parametrize("dynamo", [True, False])
@pytest.mark.parametrize("kind", [Tagger, Picture])
def test_keys_are_those_of_the_original(tmp_path, kind, dynamo):
    torch.manual_seed(0)
    model = kind().eval()
    for parameter in model.parameters():  # no two alike, which exporters merge
        torch.nn.init.normal_(parameter)
    x = torch.randint(11, (2, 5)) if kind is Tagger else torch.randn(2, 3, 6, 6)
    path = tmp_path / "model.onnx"
    exported(model, x, path, dynamo)
    made = generate(path)
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    assert {each.path: tuple(each.weight.shape) for each in made.weights} == shapes


def exported(model, x, path, dynamo):
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        if dynamo:
            shapes = ({0: torch.export.Dim.DYNAMIC},)
            torch.onnx.export(model, (x,), path, dynamo=True, dynamic_shapes=shapes)
        else:
            axes = {"x": {0: "batch"}}
            names = {"input_names": ["x"], "dynamic_axes": axes}
            torch.onnx.export(model, (x,), path, dynamo=False, **names)
