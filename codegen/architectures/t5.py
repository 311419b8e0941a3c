"""T5: an encoder and a decoder whose positions are buckets of distances."""

from __future__ import annotations

from typing import Any

from burnish.codegen.architectures.config import Config
from burnish.codegen.architectures.families import Values, family
from burnish.codegen.architectures.words import ACTIVATIONS, accepts, drops

_CONTRACTS = {
    "Model": "ids, decoder ids (batch, time) -> (batch, time, dim)",
    "ForConditionalGeneration": "ids, decoder ids -> logits (batch, time, vocab)",
    "EncoderModel": "ids (batch, time) -> (batch, time, dim)",
}


def _values(config: Config, head: str, every: bool, feed: str) -> Values:
    """every: each layer has a table of its own; feed: how the MLP is, by default."""
    config.ignore(
        "is_encoder_decoder",
        "is_decoder",
        "is_gated_act",  # both follow from feed_forward_proj
        "dense_act_fn",
        "classifier_dropout",
        "n_positions",  # there is no table of positions
    )
    depth = config.depth("num_layers", None)
    sizes: dict[str, Any] = {
        "vocab": config.size("vocab_size", None),
        "dim": config.size("d_model", None),
        "depth": depth,
        "decoder_depth": config.depth("num_decoder_layers", depth),
        "heads": config.size("num_heads", None),
        "size": config.size("d_kv", 64),
        "hidden": config.size("d_ff", None),
        "buckets": config.size("relative_attention_num_buckets", 32, least=4),
    }
    if head == "EncoderModel":
        del sizes["decoder_depth"]
    words = [*ACTIVATIONS, *(f"gated-{word}" for word in ACTIVATIONS)]
    feed = config.word("feed_forward_proj", feed, words)
    act = feed.removeprefix("gated-")
    tied = config.flag("tie_word_embeddings", True)
    return {
        "sizes": sizes,
        **drops(config, sizes, dropout_rate=0.1),
        "every": every,
        "gated": feed != act,
        "act": "gelu_new" if feed == "gated-gelu" else act,
        "eps": config.number("layer_norm_epsilon", 1e-6),
        "furthest": config.size("relative_attention_max_distance", 128),
        "tied": not config.holds("lm_head.weight")
        or config.same("lm_head.weight", "shared.weight"),
        "scaled": config.flag("scale_decoder_outputs", tied),
        "start": config.token(
            "decoder_start_token_id", config.token("pad_token_id", 0), generating=True
        ),
        "eos": config.tokens("eos_token_id", 1),
        "accepts_encode": accepts("input_ids", "attention_mask"),
        "accepts": accepts("input_ids", "attention_mask")
        if head == "EncoderModel"
        else accepts(
            "input_ids", "attention_mask", decoder_input_ids="int64[batch, _]"
        ),
        "contract": _CONTRACTS[head],
    }


@family("t5.py.jinja", {"t5": "T5"}, _CONTRACTS, "transformer")
def t5(config: Config, head: str) -> Values:
    return _values(config, head, every=False, feed="relu")


@family("t5.py.jinja", {"umt5": "UMT5"}, _CONTRACTS, "transformer")
def umt5(config: Config, head: str) -> Values:
    """Every layer has its own table of positions."""
    return _values(config, head, every=True, feed="gated-gelu")
