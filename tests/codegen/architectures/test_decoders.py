"""Llama and its relatives: numbers, ways to scale rotary positions, writing on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")

import torch
import transformers

from tests.harness.folders import Folder, batch, hugging_face

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 40,
    "vocab_size": 50,
    "pad_token_id": 0,
    "eos_token_id": 2,
    "max_position_embeddings": 64,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 1e4,
    "factor": 4.0,
    "original_max_position_embeddings": 16,
}
LONG = {
    "rope_type": "longrope",
    "rope_theta": 1e4,
    "short_factor": [1.0, 1.1, 1.2, 1.3],
    "long_factor": [1.0, 2.0, 3.0, 4.0],
    "original_max_position_embeddings": 8,
}


def scaled(**options: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_theta": 1e4, **options}}


CASES = [
    *(
        (f"Llama{head}", {})
        for head in (
            "Model",
            "ForCausalLM",
            "ForSequenceClassification",
            "ForTokenClassification",
            "ForQuestionAnswering",
        )
    ),
    (
        "LlamaForCausalLM",
        {
            "num_key_value_heads": 4,
            "head_dim": 16,
            "attention_bias": True,
            "mlp_bias": True,
            "tie_word_embeddings": True,
            "hidden_act": "gelu",
        },
    ),
    ("LlamaForCausalLM", scaled(rope_type="linear", factor=2.0)),
    (
        "LlamaForCausalLM",
        {"max_position_embeddings": 8, **scaled(rope_type="dynamic", factor=2.0)},
    ),
    ("LlamaForCausalLM", {"head_dim": 16, "rope_parameters": LLAMA3}),
    ("LlamaForCausalLM", {"head_dim": 16, "rope_parameters": YARN}),
    (
        "LlamaForCausalLM",
        {"rope_parameters": YARN | {"mscale": 0.7, "mscale_all_dim": 1.0}},
    ),
    ("MistralForCausalLM", {"sliding_window": 4}),
    ("MistralForCausalLM", {"sliding_window": None, "head_dim": 4}),
    ("MistralForQuestionAnswering", {}),
    ("Qwen2ForCausalLM", {}),
    (
        "Qwen2ForCausalLM",
        {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1},
    ),
    ("Qwen3ForCausalLM", {"head_dim": 8}),
    (
        "Qwen3ForSequenceClassification",
        {"head_dim": 16, "attention_bias": True, "num_labels": 5},
    ),
    (
        "Qwen3Model",
        {
            "use_sliding_window": True,
            "sliding_window": 3,
            "layer_types": ["sliding_attention", "full_attention", "full_attention"],
        },
    ),
    ("GemmaForCausalLM", {"head_dim": 16}),
    ("GemmaForTokenClassification", {"head_dim": 8, "hidden_act": "relu"}),
    ("Gemma2ForCausalLM", {"head_dim": 16, "sliding_window": 4}),
    (
        "Gemma2ForSequenceClassification",
        {"head_dim": 8, "attn_logit_softcapping": None, "query_pre_attn_scalar": 24},
    ),
    ("PhiForCausalLM", {}),
    ("PhiForCausalLM", {"qk_layernorm": True, **scaled(partial_rotary_factor=0.25)}),
    ("PhiForSequenceClassification", {"hidden_act": "relu"}),
    ("Phi3ForCausalLM", {}),
    ("Phi3ForCausalLM", {"sliding_window": 4, **scaled(partial_rotary_factor=0.5)}),
    (
        "Phi3ForCausalLM",
        {"rope_parameters": LONG, "original_max_position_embeddings": 8},
    ),
]


def case(name: str, options: dict[str, Any], place: Path) -> Folder:
    config = getattr(transformers, name).config_class(**(SMALL | options))
    return Folder(hugging_face(name, config), place)


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_numbers_agree_with_transformers(
    name: str, options: dict[str, Any], tmp_path: Path
) -> None:
    case(name, options, tmp_path).check(**batch((9, 5)))


@pytest.mark.parametrize(
    ("name", "options"), [c for c in CASES if c[0].endswith("CausalLM")], ids=str
)
def test_the_likeliest_tokens_are_those_of_transformers(
    name: str, options: dict[str, Any], tmp_path: Path
) -> None:
    made = case(name, options, tmp_path)
    prompts = batch((9, 5), left=True)
    given = {key: torch.tensor(value) for key, value in prompts.items()}
    expected = made.network.generate(**given, max_new_tokens=12, do_sample=False)
    found = made.model.generate(
        prompts["input_ids"], 12, attention_mask=prompts["attention_mask"], pad=0
    )
    np.testing.assert_array_equal(found, expected.numpy())


def test_a_cache_gives_what_the_whole_text_gives(tmp_path: Path) -> None:
    from burnish.generation import Cache

    made = case("Gemma2ForCausalLM", {"head_dim": 16, "sliding_window": 4}, tmp_path)
    ids = batch((20, 20))["input_ids"]
    cache = Cache()
    whole = made.model(ids).numpy()
    for start, stop in ((0, 7), (7, 8), (8, 15), (15, 20)):
        part = made.model(ids[:, start:stop], cache=cache).numpy()
        np.testing.assert_allclose(part[:, -1], whole[:, stop - 1], 1e-4, 1e-5)
    assert cache.length == 20


def test_old_spellings_of_rotary_positions(tmp_path: Path) -> None:
    """What configurations had before `rope_parameters`."""
    import json

    from burnish.codegen.pipeline import generate

    made = case("LlamaForCausalLM", {"rope_parameters": LLAMA3}, tmp_path)
    path = made.folder / "config.json"
    values = json.loads(path.read_text())
    scaling = values.pop("rope_parameters")
    values["rope_theta"] = scaling.pop("rope_theta")
    values["rope_scaling"] = scaling
    path.write_text(json.dumps(values))

    def body(text: str) -> str:
        return text.partition("\nfrom burnish")[2]

    assert body(generate(made.folder).text) == body(made.text)
