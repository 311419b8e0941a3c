"""Networks for sound, with every head and several configurations each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")

import torch
import transformers

from burnish.errors import InputError
from tests.harness.folders import Folder, hugging_face

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

WHISPER: dict[str, Any] = {
    "vocab_size": 50,
    "num_mel_bins": 8,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 48,
    "max_source_positions": 20,
    "max_target_positions": 24,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 3,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
}
OTHER = {"dropout": 0.1, "attention_dropout": 0.1, "activation_function": "relu"}
WAV2VEC2: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "conv_dim": [16, 24, 16],
    "conv_kernel": [10, 3, 2],
    "conv_stride": [5, 2, 2],
    "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 2,
    "classifier_proj_size": 12,
}
STABLE = {
    "do_stable_layer_norm": True,
    "feat_extract_norm": "layer",
    "conv_bias": True,
    "num_conv_pos_embeddings": 7,
    "hidden_dropout": 0.0,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
    "final_dropout": 0.0,
    "mask_time_prob": 0.0,
}


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(
    ("head", "options"),
    [
        ("Model", {}),
        ("ForConditionalGeneration", {}),
        ("ForConditionalGeneration", OTHER | {"tie_word_embeddings": False}),
        ("ForAudioClassification", OTHER | {"num_labels": 5}),
    ],
    ids=str,
)
def test_whisper(head: str, options: dict[str, Any], tmp_path: Path) -> None:
    config = transformers.WhisperConfig(**(WHISPER | options))
    made = Folder(hugging_face(f"Whisper{head}", config), tmp_path)
    inputs = {"input_features": floats(2, 8, 40)}
    if head != "ForAudioClassification":
        ids = np.random.default_rng(1).integers(3, 50, (2, 9))
        inputs["decoder_input_ids"] = ids
    made.check(**inputs)


@pytest.mark.parametrize("banned", [None, [5, 7]])
def test_what_whisper_writes(banned: list[int] | None, tmp_path: Path) -> None:
    options = {"suppress_tokens": banned, "begin_suppress_tokens": banned and [9]}
    config = transformers.WhisperConfig(**(WHISPER | options))
    network = hugging_face("WhisperForConditionalGeneration", config)
    network.generation_config.suppress_tokens = banned
    network.generation_config.begin_suppress_tokens = banned and [9]
    made = Folder(network, tmp_path)
    made.check_source()
    sound = floats(2, 8, 40)
    with torch.no_grad():
        ids = torch.full((2, 1), 3)
        for first in [True, *[False] * 11]:
            logits = network(torch.tensor(sound), decoder_input_ids=ids).logits[:, -1]
            logits[:, (banned or []) + ([9] if banned and first else [])] = -torch.inf
            ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], 1)
    found = made.model.generate(sound, 12, eos=None)
    np.testing.assert_array_equal(found, ids.numpy())
    with pytest.raises(InputError, match=r"24 positions .* got 1 \+ 24 = 25"):
        made.model.generate(sound, 24)


@pytest.mark.parametrize(
    ("head", "options"),
    [
        ("Model", {}),
        ("Model", STABLE),
        ("ForCTC", {}),
        ("ForCTC", STABLE | {"feat_extract_activation": "relu", "hidden_act": "silu"}),
        ("ForSequenceClassification", {"num_labels": 5}),
        ("ForAudioFrameClassification", {"feat_proj_dropout": 0.1}),
    ],
    ids=str,
)
def test_wav2vec2(head: str, options: dict[str, Any], tmp_path: Path) -> None:
    config = transformers.Wav2Vec2Config(**(WAV2VEC2 | options))
    made = Folder(hugging_face(f"Wav2Vec2{head}", config), tmp_path)
    sound = floats(2, 400)
    made.check(input_values=sound)
    mask = np.ones((2, 400), int)
    mask[1, 250:] = 0
    inputs = {"input_values": sound * mask, "attention_mask": mask}
    inputs["input_values"] = inputs["input_values"].astype(np.float32)
    made.check_numbers(made.network, inputs)
