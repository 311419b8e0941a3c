"""Generated source trains: gradients equal PyTorch's, and the loss falls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")

import torch
import transformers

from burnish import Tensor, nn, optim
from tests.harness.folders import Folder, batch, hugging_face

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "vocab_size": 50,
    "pad_token_id": 0,
}
STILL = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
NETWORKS = {
    "BertForMaskedLM": transformers.BertConfig(**SMALL, **STILL),
    "LlamaForCausalLM": transformers.LlamaConfig(**SMALL, num_key_value_heads=2),
    "Gemma2ForCausalLM": transformers.Gemma2Config(
        **SMALL, num_key_value_heads=2, head_dim=8, sliding_window=6
    ),
    "GPT2LMHeadModel": transformers.GPT2Config(
        n_embd=32,
        n_layer=2,
        n_head=4,
        vocab_size=50,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_are_those_of_pytorch(name: str, tmp_path: Path) -> None:
    """In double precision, so that no rounding hides a wrong term."""
    network = hugging_face(name, NETWORKS[name])
    made = Folder(network, tmp_path)
    inputs = batch((9, 5))
    kept = inputs["attention_mask"] > 0
    weights = np.random.default_rng(1).normal(size=(*kept.shape, 50)) * kept[..., None]

    network.double()
    given = {key: torch.tensor(value) for key, value in inputs.items()}
    (network(**given).logits * torch.tensor(weights)).sum().backward()
    expected = {n: p.grad.numpy() for n, p in network.named_parameters()}

    model = made.model.map(lambda path, tensor: tensor.data.astype(np.float64))
    model.to("cpu:autodiff")
    loss = (model(**inputs) * weights).sum()
    gradients = loss.backward()
    paths = dict(model.named_parameters())
    assert paths.keys() == expected.keys()
    scale = max(float(np.abs(g).max()) for g in expected.values())
    for path, parameter in paths.items():
        found = parameter.grad(gradients).numpy()
        bound = 1e-5 * np.abs(expected[path]).max() + 1e-9 * scale
        np.testing.assert_allclose(found, expected[path], 0, bound, path)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_loss_falls(name: str, tmp_path: Path) -> None:
    model = Folder(hugging_face(name, NETWORKS[name]), tmp_path).model
    model.to("cpu:autodiff")
    inputs = batch((9, 9))
    target = Tensor(inputs["input_ids"].reshape(-1), device="cpu:autodiff")
    optimizer, losses = optim.Adam(), []
    for _ in range(12):
        loss = nn.cross_entropy(model(**inputs).reshape(-1, 50), target)
        losses.append(loss.item())
        optimizer.step(1e-2, model, loss.backward())
    assert losses[-1] < 0.5 * losses[0]


def test_dropout_acts_in_training_only(tmp_path: Path) -> None:
    network = hugging_face("BertModel", transformers.BertConfig(**SMALL))
    model = Folder(network, tmp_path).model
    ids = batch((9, 9))["input_ids"]

    def first() -> np.ndarray:
        return model(ids)[0].detach().numpy()

    np.testing.assert_array_equal(first(), first())
    model.to("cpu:autodiff")
    assert np.abs(first() - first()).max() > 0.1
