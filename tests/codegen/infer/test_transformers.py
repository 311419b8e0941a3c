"""Weights of transformers' models, as they save them and as torch does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")

import torch
import transformers

from burnish.serialize import open_weights
from tests.harness.weights_only import Made, saved

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

SMALL = {
    "vocab_size": 50,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "Bert": ("BertModel", SMALL),
    "GPT2": (
        "GPT2LMHeadModel",
        {"vocab_size": 50, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 24},
    ),
    "Llama": ("LlamaForCausalLM", SMALL | {"num_key_value_heads": 2}),
    "T5": (
        "T5Model",
        {
            "vocab_size": 50,
            "d_model": 32,
            "d_kv": 8,
            "d_ff": 48,
            "num_layers": 3,
            "num_heads": 4,
        },
    ),
    "ViT": ("ViTModel", SMALL | {"image_size": 16, "patch_size": 4}),
    "Whisper": (
        "WhisperModel",
        {
            "vocab_size": 60,
            "num_mel_bins": 8,
            "d_model": 32,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 48,
            "decoder_ffn_dim": 48,
            "max_source_positions": 20,
            "max_target_positions": 24,
            "pad_token_id": 0,
        },
    ),
    "Wav2Vec2": (
        "Wav2Vec2Model",
        SMALL
        | {
            "conv_dim": [16, 24, 16],
            "conv_kernel": [10, 3, 2],
            "conv_stride": [5, 2, 2],
            "num_conv_pos_embeddings": 8,
            "num_conv_pos_embedding_groups": 2,
            "feat_extract_norm": "layer",
        },
    ),
}
UNKNOWN = ("stride", "padding", "dilation", "padding_idx", "num_groups")


def network(kind: str) -> torch.nn.Module:
    name, options = MODELS[kind]
    config = getattr(transformers, f"{kind}Config")(**options)
    torch.manual_seed(0)
    return getattr(transformers, name)(config)


@pytest.mark.parametrize("kind", MODELS)
def test_as_torch_saves_it(kind: str, tmp_path: Path) -> None:
    model = network(kind)
    Made(saved(model.state_dict(), tmp_path / "some.pt"), tmp_path).check(
        model, UNKNOWN
    )


@pytest.mark.parametrize("size", ["10GB", "20KB"], ids=["whole", "in shards"])
@pytest.mark.parametrize("kind", MODELS)
def test_as_transformers_saves_it(kind: str, size: str, tmp_path: Path) -> None:
    model = network(kind)
    model.save_pretrained(tmp_path / "some", max_shard_size=size)
    (tmp_path / "some" / "config.json").unlink()
    made = Made(tmp_path / "some", tmp_path / "out")
    stored = open_weights(tmp_path / "some")
    held = made.model.state_dict()
    assert set(held) == set(stored)
    for name, tensor in stored.items():
        np.testing.assert_array_equal(held[name], tensor.read(), err_msg=name)
    if kind == "ViT":  # whose names transformers changes while it saves
        return
    made.model.save_file(tmp_path / "back.pt")
    state = torch.load(tmp_path / "back.pt", weights_only=True)
    report = model.load_state_dict(state, strict=False)
    assert not report.unexpected_keys
    assert all("embed" in name or "head" in name for name in report.missing_keys)
