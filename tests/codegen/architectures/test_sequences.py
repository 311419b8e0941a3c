"""Encoders with decoders, and GPT-2: numbers, and what they write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")

import torch
import transformers

from burnish.errors import InputError
from tests.harness.folders import Folder, batch, hugging_face

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

GPT2: dict[str, Any] = {
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "vocab_size": 50,
    "n_positions": 32,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
NO_DROPOUT = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
GPT2_CASES = [
    ("GPT2LMHeadModel", {}),
    (
        "GPT2LMHeadModel",
        {
            "n_inner": 48,
            "activation_function": "relu",
            "scale_attn_by_inverse_layer_idx": True,
            "tie_word_embeddings": False,
            **NO_DROPOUT,
        },
    ),
    ("GPT2Model", {"scale_attn_weights": False}),
    ("GPT2ForSequenceClassification", {"num_labels": 5}),
    ("GPT2ForTokenClassification", {}),
    ("GPT2ForQuestionAnswering", NO_DROPOUT),
]
T5: dict[str, Any] = {
    "d_model": 32,
    "d_kv": 6,
    "d_ff": 40,
    "num_layers": 2,
    "num_heads": 4,
    "vocab_size": 50,
    "decoder_start_token_id": 0,
}
T5_CASES = [
    ("T5ForConditionalGeneration", {}),
    (
        "T5ForConditionalGeneration",
        {
            "feed_forward_proj": "gated-gelu",
            "dropout_rate": 0.0,
            "num_decoder_layers": 1,
            "tie_word_embeddings": False,
        },
    ),
    (
        "T5Model",
        {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 20},
    ),
    ("T5EncoderModel", {}),
    ("UMT5ForConditionalGeneration", {}),
    ("UMT5EncoderModel", {"feed_forward_proj": "gated-silu"}),
]


@pytest.mark.parametrize(("name", "options"), GPT2_CASES, ids=str)
def test_gpt2(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    config = transformers.GPT2Config(**(GPT2 | options))
    made = Folder(hugging_face(name, config), tmp_path)
    made.check(**batch((9, 5)))
    if name == "GPT2LMHeadModel":
        prompts = batch((9, 5), left=True)
        given = {key: torch.tensor(value) for key, value in prompts.items()}
        expected = made.network.generate(**given, max_new_tokens=12, do_sample=False)
        found = made.model.generate(
            prompts["input_ids"], 12, attention_mask=prompts["attention_mask"], pad=0
        )
        np.testing.assert_array_equal(found, expected.numpy())
        with pytest.raises(InputError, match=r"32 positions .* got 9 \+ 24 = 33"):
            made.model.generate(prompts["input_ids"], 24)


@pytest.mark.parametrize(("name", "options"), T5_CASES, ids=str)
def test_t5(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    config = getattr(transformers, name).config_class(**(T5 | options))
    made = Folder(hugging_face(name, config), tmp_path)
    texts = batch((40, 17))
    rest = {}
    if not name.endswith("EncoderModel"):
        rest = {"decoder_input_ids": np.random.default_rng(1).integers(3, 50, (2, 31))}
    made.check(**texts, **rest)
    if name.endswith("Generation"):
        given = {key: torch.tensor(value) for key, value in texts.items()}
        expected = made.network.generate(**given, max_new_tokens=12, do_sample=False)
        found = made.model.generate(
            texts["input_ids"], 12, texts["attention_mask"], pad=0
        )
        np.testing.assert_array_equal(found, expected.numpy())
