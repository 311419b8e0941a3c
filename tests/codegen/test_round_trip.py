"""Weights that Burnish saves load in PyTorch: strictly, with equal values."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from burnish.codegen import export
from burnish.codegen.pipeline import Options, generate, write

torch = pytest.importorskip("torch")

from safetensors.torch import load_file  # noqa: E402

from tests.harness import torch_networks as networks  # noqa: E402
from tests.harness.exported import ran  # noqa: E402
from tests.harness.torch_exports import exported  # noqa: E402

pytestmark = pytest.mark.oracle

BatchNorm = torch.nn.modules.batchnorm._BatchNorm
PRESERVE = torch.onnx.TrainingMode.PRESERVE
WAYS: dict[str, tuple[bool, dict[str, Any]]] = {
    "older": (False, {"training": PRESERVE, "do_constant_folding": False}),
    "newer": (True, {"optimize": False}),
    "newer, optimized": (True, {}),
}


class Kinds(torch.nn.Module):
    """Convolutions with a bias and without, dropout, and all kinds of buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, 6, 3, padding=1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(6)
        self.conv2 = torch.nn.Conv2d(6, 6, 3, padding=1)
        self.up = torch.nn.ConvTranspose2d(6, 6, 2, 2, bias=False)
        self.drop = torch.nn.Dropout(0.3)
        self.fc = torch.nn.Linear(6, 6, bias=False)
        self.head = torch.nn.Linear(6, 4)
        self.token = torch.nn.Parameter(torch.randn(1, 1, 6))
        self.places = torch.nn.Embedding(146, 6)
        self.register_buffer("mean", torch.randn(6))
        self.register_buffer("order", torch.randperm(146))
        self.register_buffer("ids", torch.arange(146)[None], persistent=False)
        self.register_buffer("swaps", torch.randperm(146), persistent=False)
        self.register_buffer("mask", torch.rand(146, 6) > 0.2, persistent=False)

    def forward(self, images):
        x = self.up(self.conv2(torch.relu(self.bn1(self.conv1(images)))))
        x = x.flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x, self.token + x[:, :1]], 1)
        x = x + self.places(self.ids)
        x = x[:, self.swaps][:, self.order] * self.mask - self.mean
        return self.head(self.drop(self.fc(x)))


def masked() -> torch.nn.Module:
    transformers = pytest.importorskip("transformers")
    small = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24}
    config = transformers.DistilBertConfig(vocab_size=31, **small)
    return transformers.DistilBertModel(config)


def causal() -> torch.nn.Module:
    """GPT-2, whose Conv1D keeps a matrix as (in, out)."""
    transformers = pytest.importorskip("transformers")
    small = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 12}
    config = transformers.GPT2Config(vocab_size=31, **small, use_cache=False)

    class Masked(transformers.GPT2Model):  # type: ignore[misc, name-defined]
        def forward(self, ids: Any) -> Any:  # the older exporter writes no other mask
            return super().forward(ids, attention_mask=torch.ones_like(ids))

    return Masked(config)


def pictures() -> torch.nn.Module:
    transformers = pytest.importorskip("transformers")
    small = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.ViTConfig(
        **small, intermediate_size=24, image_size=16, patch_size=8
    )
    return transformers.ViTModel(config, add_pooling_layer=False)


def shifted() -> torch.nn.Module:
    transformers = pytest.importorskip("transformers")
    small: dict[str, Any] = {
        "embed_dim": 8,
        "depths": [2, 2],
        "num_heads": [2, 2],
        "window_size": 4,
    }
    small["attn_implementation"] = "eager"  # the other one exports nothing
    config = transformers.SwinConfig(image_size=16, patch_size=2, **small)
    return transformers.SwinModel(config, add_pooling_layer=False)


IMAGES, WORDS = (2, 3, 16, 16), torch.randint(3, 31, (2, 5))
MODELS: dict[str, tuple[Callable[[], torch.nn.Module], Any]] = {
    "kinds": (Kinds, (2, 3, 6, 6)),
    "resnet": (networks.ResNet18, (2, 3, 32, 32)),
    "autoencoder": (networks.AutoEncoder, (2, 1, 16, 16)),
    "lstm": (networks.Tagger, WORDS),
    "bert": (networks.bert, WORDS),
    "distilbert": (masked, WORDS),
    "gpt2": (causal, WORDS),
    "vit": (pictures, IMAGES),
}
NEWER = {"swin": (shifted, IMAGES)}
CASES = [(name, way) for name in MODELS for way in ("older", "newer")]
CASES += [(name, "newer") for name in NEWER]
CASES += [("gpt2", "newer, optimized")]


def imported(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The class in a source, imported as a program imports it."""
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name).Model


def first_result(model: torch.nn.Module) -> torch.nn.Module:
    """The model with a tensor for its result, as an exporter wants it."""

    class First(type(model)):  # type: ignore[misc]
        def forward(self, inputs: Any) -> Any:
            found = super().forward(inputs)
            return found if isinstance(found, torch.Tensor) else found[0]

    model.__class__ = First
    return model


def drawn(name: str) -> tuple[torch.nn.Module, torch.Tensor]:
    """A network in which no two weights are alike, and an input."""
    torch.manual_seed(0)
    make, given = (MODELS | NEWER)[name]
    model = make().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    for module in model.modules():
        if isinstance(module, BatchNorm):
            module.running_mean.normal_(std=0.2)
            module.running_var.uniform_(0.5, 2)
    x = torch.randn(given) if isinstance(given, tuple) else given
    return first_result(model), x


@pytest.mark.parametrize(("name", "way"), CASES)
def test_pytorch_opens_what_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, way: str
) -> None:
    model, x = drawn(name)
    dynamo, options = WAYS[way]
    axes: list[dict[int, str]] = []
    if name in NEWER:
        axes = [{}]  # sizes of its windows are numbers, or PyTorch exports nothing
    elif x.dtype == torch.int64:
        axes = [{0: "batch", 1: "time"}]
    path = exported(model, (x,), tmp_path / "net.onnx", dynamo, axes, **options)
    write(generate(path), tmp_path)
    with torch.no_grad():
        expected = model(x).numpy()
    kind = imported(tmp_path, "net", monkeypatch)
    ours = kind.from_file()
    for parameter in ours.parameters():
        parameter.assign(2 * parameter.data)
    ours.save_file(tmp_path / "tuned.safetensors")
    ours.save_file(tmp_path / "tuned.pt")
    saved = load_file(tmp_path / "tuned.safetensors")
    pickled = torch.load(tmp_path / "tuned.pt", weights_only=True)
    for state, factor in ((load_file(tmp_path / "net.safetensors"), 1), (saved, 2)):
        other, _ = drawn(name)
        other.load_state_dict(state, strict=True)
        for key, value in model.named_parameters():
            held = other.get_parameter(key).detach()
            np.testing.assert_array_equal(held, factor * value.detach(), key)
    model.load_state_dict(pickled, strict=True)
    with torch.no_grad():
        wanted = model(x).numpy()
    for file in ("tuned.safetensors", "tuned.pt"):
        found = kind.from_file(tmp_path / file)(x.numpy()).numpy()
        np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-4)
    found = kind.from_file()(x.numpy()).numpy()
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-4)


AGAIN = ("resnet", "lstm", "bert", "vit")


@pytest.mark.parametrize("way", ["older", "newer, optimized"])
@pytest.mark.parametrize("name", AGAIN)
def test_an_export_gives_the_same_source_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, way: str
) -> None:
    path, x = model_file(tmp_path, name, way)
    made = generate(path)
    write(made, tmp_path)
    model = imported(tmp_path, "net", monkeypatch).from_file()
    names = [each.name for each in onnx.load(path).graph.output]
    export(model, x.numpy(), outputs=names).save(path)
    assert body(generate(path).text) == body(made.text)


def test_what_python_makes_of_sizes_goes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GPT-2's mask is made of the length, and all layers share it."""
    path, x = model_file(tmp_path, "gpt2", "newer, optimized")
    write(generate(path), tmp_path)
    model = imported(tmp_path, "net", monkeypatch).from_file()
    back = export(model, x.numpy())
    back.save(path)
    again = generate(path).text
    assert "attn_mask=mask)" in again
    assert "z = h(z, mask)" in again or "x = h(x, mask)" in again
    assert again.count("transposed=True") == 4
    for shape in ((1, 3), (4, 11)):
        ids = np.random.default_rng(0).integers(0, 31, shape)
        (found,) = ran(back, ids)
        np.testing.assert_allclose(found, model(ids), rtol=1e-3, atol=1e-4)


def model_file(folder: Path, name: str, way: str) -> tuple[Path, torch.Tensor]:
    """A network as a file, with sizes that may change, and an input."""
    model, x = drawn(name)
    dynamo, options = WAYS[way]
    axes = [{0: "batch"} | ({1: "time"} if x.dtype == torch.int64 else {})]
    axes = [{}] if name in NEWER else axes
    path = exported(model, (x,), folder / "net.onnx", dynamo, axes, **options)
    return path, x


def body(text: str) -> str:
    """A source without what its header says of the file."""
    return re.sub(r'Imported from.*?"""', '"""', text, count=1, flags=re.DOTALL)


@pytest.mark.parametrize("embed", [False, True])
def test_a_table_without_a_rule_travels_with_the_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embed: bool
) -> None:
    model, x = drawn("kinds")
    path = exported(model, (x,), tmp_path / "net.onnx", True, optimize=False)
    made = generate(path, Options(embed=embed))
    write(made, tmp_path)
    assert made.text.count("persistent=False") == 3
    assert made.text.count("nn.init.loaded") == 2
    assert "nn.init.arange" in made.text
    assert {"swaps", "mask", "ids"}.isdisjoint(e.path for e in made.weights)
    ours = imported(tmp_path, "net", monkeypatch).from_embedded()
    with torch.no_grad():
        np.testing.assert_allclose(ours(x.numpy()), model(x), rtol=1e-4, atol=1e-5)
