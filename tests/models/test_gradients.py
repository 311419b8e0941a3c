"""Whole imported models have PyTorch's gradients, and take PyTorch's steps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burnish import optim
from burnish.models._gallery import BY_MODULE

torch = pytest.importorskip("torch", reason="torch is not installed")

from tests.harness import torch_networks as networks  # noqa: E402
from tests.harness.gradients import disagreement, exported, uneven  # noqa: E402
from tests.harness.imported import imported  # noqa: E402

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore"),  # exporters warn of themselves
]

TOKENS = ("batch", "sequence")


def tokens(*names: str) -> dict[str, Any]:
    """Two sentences of 7 tokens; 0, the padding that trains nowhere, is not in them."""
    torch.manual_seed(1)
    made = {"input_ids": torch.randint(1, 50, (2, 7))}
    if "attention_mask" in names:
        made["attention_mask"] = torch.ones(2, 7, dtype=torch.int64)
    if "token_type_ids" in names:
        made["token_type_ids"] = torch.randint(0, 2, (2, 7))
    return made


def pictures(name: str, *shape: int) -> dict[str, Any]:
    torch.manual_seed(1)
    return {name: torch.randn(shape)}


#: name: network, inputs, how it is exported.
CASES: dict[str, tuple[Callable[[], Any], dict[str, Any], dict[str, Any]]] = {
    "lstm": (
        networks.Tagger,
        {"tokens": tokens()["input_ids"]},
        {"axes": ("batch", "time")},
    ),
    "lstm dynamo": (
        networks.Tagger,
        {"tokens": tokens()["input_ids"]},
        {"axes": ("batch", "time"), "dynamo": True, "opset": 20},
    ),
    "squeezenet": (networks.SqueezeNet, pictures("images", 2, 3, 64, 64), {}),
    "squeezenet dynamo": (
        networks.SqueezeNet,
        pictures("images", 2, 3, 64, 64),
        {"dynamo": True, "opset": 20},
    ),
    "transformer": (networks.encoder, pictures("src", 2, 5, 16), {}),
    **{
        f"{name} opset {opset}": (
            network,
            tokens(*inputs),
            {"axes": TOKENS, "dynamo": True, "opset": opset},
        )
        for name, network, inputs in (
            ("bert", networks.bert, ("attention_mask", "token_type_ids")),
            ("gpt2", networks.gpt2, ("attention_mask",)),
            ("llama", networks.llama, ("attention_mask",)),
        )
        for opset in (18, 23)
    },
}


def agree(apart: dict[str, float]) -> None:
    worst = {name: value for name, value in apart.items() if not value < 1}
    assert not worst, f"in tolerances: {worst}"


@pytest.mark.oracle("transformers")
@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str, tmp_path: Path) -> None:
    network, inputs, how = CASES[name]
    original = uneven(network)
    model = imported(exported(original, inputs, **how), tmp_path)
    agree(disagreement(original, model, inputs))


def test_gradients_of_the_digit_classifier() -> None:
    from burnish.models.mnist.mnist import Model
    from burnish.models.mnist.train_original import Model as Original

    model = Model.from_file()
    original = Original()
    original.load_state_dict(
        {name: torch.tensor(array) for name, array in model.state_dict().items()}
    )
    agree(disagreement(original, model, pictures("images", 4, 28, 28)))


TRAINED = {
    "resnet18": (networks.ResNet18, (4, 3, 64, 64)),
    "autoencoder": (networks.AutoEncoder, (4, 1, 28, 28)),
}
DRAWS = 3


@pytest.mark.parametrize("name", TRAINED)
def test_training_with_batch_normalization(name: str, tmp_path: Path) -> None:
    """A unit that is zero but for rounding may go either way: other inputs decide."""
    network, shape = TRAINED[name]
    apart: dict[str, float] = {}
    for seed in range(DRAWS):
        original = uneven(network, seed)
        inputs = pictures("images", *shape)
        model = imported(exported(original, inputs), tmp_path)
        apart = disagreement(original, model, inputs, training=True)
        statistics_agree(original, model)
        if max(apart.values()) < 1:
            break
    agree(apart)


def statistics_agree(original: Any, model: Any) -> None:
    state = model.state_dict()
    for path, buffer in original.named_buffers():
        np.testing.assert_allclose(np.asarray(state[path]), buffer, 1e-4, 1e-6)


def test_steps_of_gradient_descent(tmp_path: Path) -> None:
    """Through export, import, gradients and optimizer, by the author's names."""
    inputs = pictures("images", 8, 1, 28, 28)
    original = uneven(networks.AutoEncoder)
    model = imported(exported(original, inputs), tmp_path).train()
    original.train()
    theirs = torch.optim.SGD(original.parameters(), lr=0.1, momentum=0.9)
    ours = optim.SGD(momentum=0.9)
    for _ in range(3):
        theirs.zero_grad()
        (original(**inputs) ** 2).mean().backward()
        theirs.step()
        output = model(inputs["images"].numpy())
        ours.step(0.1, model, (output * output).mean().backward())
    expected = original.state_dict()
    for path, array in model.state_dict().items():
        wanted = expected[path].numpy()
        apart = np.abs(np.asarray(array) - wanted).max()
        assert apart <= 1e-4 * np.abs(wanted).max(), path


def test_the_gallerys_resnet_has_the_authors_names() -> None:
    model = BY_MODULE["resnet18_torchscript"].model()()
    names = networks.ResNet18(classes=1000).state_dict().keys()
    assert {path for path, _ in model.named_tensors()} == set(names)
