"""Effects of PyTorch's export options: docs/export.md, its table and its blocks."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from burnish.codegen.pipeline import Generated, generate, write
from tests.harness.imported import load_module
from tests.test_docs import ROOT, blocks

torch = pytest.importorskip("torch")

from tests.harness.torch_exports import export  # noqa: E402

pytestmark = pytest.mark.oracle

TrainingMode = torch.onnx.TrainingMode
Dim = torch.export.Dim
BN = {"bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"}


class Net(torch.nn.Module):
    """images (batch, 3, 8, 8) -> (batch, 2)"""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = torch.nn.Conv2d(3, 4, 3, bias=False)
        self.bn = torch.nn.BatchNorm2d(4)
        self.drop = torch.nn.Dropout(0.25)
        self.fc = torch.nn.Linear(4, 2)

    def forward(self, images):
        x = torch.relu(self.bn(self.conv(images))).mean((2, 3))
        return self.fc(self.drop(x))


def made(folder: Path, model: torch.nn.Module, **options: Any) -> Generated:
    path = folder / "net.onnx"
    if not options.get("dynamo", True):
        options.setdefault("input_names", ["images"])
    images = torch.zeros(2, 3, 8, 8)
    return generate(export(model, (images,), path, verbose=False, **options))


def keys(generated: Generated) -> set[str]:
    return {entry.path for entry in generated.weights}


ALL = set(Net().state_dict())
OLDER: dict[str, Any] = {"dynamo": False}
PRESERVE = {**OLDER, "training": TrainingMode.PRESERVE, "do_constant_folding": False}
NEWER: dict[str, Any] = {"dynamo": True, "optimize": False}


@pytest.mark.parametrize(
    ("options", "kept", "lost"),
    [
        ({"dynamo": True}, {"fc.weight", "fc.bias"}, BN),
        (NEWER, ALL, set()),
        (OLDER, {"fc.weight", "fc.bias"}, BN),
        (PRESERVE, ALL, set()),
        ({**OLDER, "do_constant_folding": False}, ALL, set()),
        (
            {**PRESERVE, "training": TrainingMode.TRAINING},
            {"bn.weight", "bn.bias"},
            {"bn.running_mean", "bn.running_var"},
        ),
        ({**NEWER, "keep_initializers_as_inputs": True}, ALL, set()),
        ({**PRESERVE, "keep_initializers_as_inputs": True}, ALL, set()),
        ({**NEWER, "external_data": True}, ALL, set()),
    ],
)
def test_the_keys_that_options_keep(options, kept, lost, tmp_path):
    found = keys(made(tmp_path, Net().eval(), **options))
    assert kept <= found
    assert not lost & found
    assert kept != ALL or found == ALL


def test_without_export_params_weights_are_inputs(tmp_path):
    generated = made(tmp_path, Net().eval(), **PRESERVE, export_params=False)
    assert not generated.weights


@pytest.mark.parametrize("options", [NEWER, PRESERVE], ids=["newer", "older"])
def test_dropout_stays_beside_statistics(options, tmp_path):
    model = Net().train()
    model.bn.eval()
    generated = made(tmp_path, model, **options)
    assert "nn.Dropout(p=0.25)" in generated.text
    assert keys(generated) == set(model.state_dict())


@pytest.mark.parametrize("options", [NEWER, PRESERVE], ids=["newer", "older"])
def test_eval_leaves_dropout_out(options, tmp_path):
    assert "Dropout" not in made(tmp_path, Net().eval(), **options).text


@pytest.mark.parametrize(
    ("options", "size"),
    [
        (NEWER, "2"),
        (PRESERVE, "2"),
        ({**PRESERVE, "dynamic_axes": {"images": {0: "batch"}}}, "batch"),
        ({**NEWER, "dynamic_shapes": {"images": {0: Dim("batch")}}}, "batch"),
        ({**NEWER, "dynamic_shapes": {"images": {0: Dim.DYNAMIC}}}, r"[a-z]\w*"),
    ],
)
def test_the_names_of_sizes(options, size, tmp_path):
    text = made(tmp_path, Net().eval(), **options).text
    assert re.search(rf'images="float32\[{size}, 3, 8, 8\]"', text), text


class Words(torch.nn.Module):
    """tokens (batch, time) -> (batch, time, 4)"""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(7, 4)

    def forward(self, tokens):
        return self.embed(tokens)


@pytest.mark.filterwarnings("ignore")  # of the exporters
def test_the_blocks_of_the_page(tmp_path, monkeypatch):
    """Each export has all keys; the last block brings the weights back."""
    monkeypatch.chdir(tmp_path)
    page = blocks(ROOT / "docs" / "export.md")
    *exports, back = [block.text for block in page if block.mark == "with PyTorch"]
    given = {"images": torch.zeros(2, 3, 8, 8), "tokens": torch.ones(2, 5).long()}
    for text in exports:
        model = Words() if "tokens" in text else Net()
        exec(text, {"torch": torch, "model": model, **given})
        generated = generate("net.onnx")
        assert keys(generated) == set(model.state_dict())
    write(generated, tmp_path)
    other = Words()
    module = load_module(tmp_path / "net.py")
    monkeypatch.setitem(sys.modules, "net", module)
    exec(back, {"Model": module.Model, "model": other})
    assert torch.equal(other.embed.weight, model.embed.weight)
