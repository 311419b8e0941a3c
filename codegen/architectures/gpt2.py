"""GPT-2: learned positions, transposed weights."""

from __future__ import annotations

from typing import Any

from burnish.codegen.architectures.config import Config
from burnish.codegen.architectures.decoders import CONTRACTS
from burnish.codegen.architectures.families import Values, family
from burnish.codegen.architectures.words import ACTIVATIONS, accepts, drops, trunk

_HEADS = tuple(head for head in CONTRACTS if head != "ForCausalLM")


@family("gpt2.py.jinja", {"gpt2": "GPT2"}, _HEADS, "transformer")
def gpt2(config: Config, head: str) -> Values:
    config.fixed(add_cross_attention=False)
    config.ignore(
        "reorder_and_upcast_attn",  # how half precision is kept from overflowing
        "summary_type",
        "summary_use_proj",
        "summary_activation",
        "summary_proj_to_labels",
        "summary_first_dropout",
    )
    dim = config.size("n_embd", 768)
    sizes: dict[str, Any] = {
        "vocab": config.size("vocab_size", 50257),
        "positions": config.size("n_positions", 1024),
        **trunk(config, 768, 12, 12, 4 * dim, keys="n_embd n_layer n_head n_inner"),
    }
    scaled = config.flag("scale_attn_weights", True)
    by_layer = config.flag("scale_attn_by_inverse_layer_idx", False)
    scale = ", scale=self.scale" if by_layer else "" if scaled else ", scale=1.0"
    return {
        "sizes": sizes,
        **drops(config, sizes, resid_pdrop=0.1, attn_pdrop=0.1),
        "embedding_dropout": config.rate("embd_pdrop", 0.1),
        "scaled": scaled,
        "by_layer": by_layer,
        "scale": scale,
        "act": config.word("activation_function", "gelu_new", ACTIVATIONS),
        "eps": config.number("layer_norm_epsilon", 1e-5),
        "embedding": "wte",
        "places": "wpe",
        "lm_bias": False,
        "final_softcap": 0.0,
        "tied": config.flag("tie_word_embeddings", True),
        "labels": config.labels(),
        "classifier_dropout": config.rate(
            "classifier_dropout", config.rate("hidden_dropout", 0.1)
        ),
        "score": "classifier",
        "pad": config.token("pad_token_id"),
        "eos": config.tokens("eos_token_id", 50256),
        "contract": CONTRACTS[head],
        "accepts": accepts("input_ids", "attention_mask", "position_ids"),
    }
