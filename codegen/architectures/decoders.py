"""Decoders of text with rotary positions: Llama and its relatives."""

from __future__ import annotations

import json
from typing import Any

from burnish.codegen.architectures.config import Config
from burnish.codegen.architectures.families import Values, family
from burnish.codegen.architectures.rope import rope_values
from burnish.codegen.architectures.words import ACTIVATIONS, accepts

CONTRACTS = {
    "Model": "ids (batch, time) -> (batch, time, dim)",
    "ForCausalLM": "ids (batch, time) -> logits (batch, time, vocab)",
    "LMHeadModel": "ids (batch, time) -> logits (batch, time, vocab)",
    "ForSequenceClassification": "ids (batch, time) -> logits (batch, labels)",
    "ForTokenClassification": "ids (batch, time) -> logits (batch, time, labels)",
    "ForQuestionAnswering": "ids (batch, time) -> start, end (batch, time)",
}
_HEADS = tuple(head for head in CONTRACTS if head != "LMHeadModel")


def _values(config: Config, head: str, **own: Any) -> Values:
    """Variables of Llama's template; `own` are those in which a relative differs."""
    dim = config.size("hidden_size", None)
    heads = config.size("num_attention_heads", None)
    kv_heads = config.size("num_key_value_heads", own.pop("kv_heads", heads) or heads)
    if heads % kv_heads:
        config.refuse("num_key_value_heads", f"a divisor of {heads}", kv_heads)
    head_dim = config.size("head_dim", own.pop("head_dim", None) or dim // heads)
    positions = config.size("max_position_embeddings", own.pop("positions", 2048))
    depth = config.depth("num_hidden_layers", None)
    rope, share = rope_values(config, head_dim, positions)
    grouped, wide = kv_heads != heads, head_dim * heads != dim
    window, local = own.pop("windows", (None, ""))
    if "eps" not in own:
        own["eps"] = config.number("rms_norm_eps", 1e-6)
    if "act" not in own:
        own["act"] = _act(config, "silu")
    sizes = {
        "vocab": config.size("vocab_size", None),
        "dim": dim,
        "depth": depth,
        "heads": heads,
        **({"kv_heads": kv_heads} if grouped else {}),
        **({"head_dim": head_dim} if wide else {}),
        "hidden": config.size("intermediate_size", None),
        **({"window": window} if window else {}),
    }
    config.training_only("attention_dropout", "resid_pdrop", "embd_pdrop")
    base = "transformer" if _is_old_reader(config, head) else "model"
    return {
        "sizes": sizes,
        "rope": rope,
        "partial": share if share != 1 else None,
        "grouped": grouped,
        "wide": wide,
        "kv": "kv_heads" if grouped else "heads",
        "window": window,
        "layer_is_local": local,
        "padding": config.token("pad_token_id"),
        "pad": config.token("pad_token_id"),
        "eos": config.tokens("eos_token_id", own.pop("eos", None)),
        "tied": config.flag("tie_word_embeddings", own.pop("tied", False)),
        "labels": config.labels(),
        "classifier_dropout": config.rate(
            "classifier_dropout", config.rate("hidden_dropout", 0.1)
        ),
        "score": "score",
        "base": base,
        "embedding": "embed_tokens",
        "contract": CONTRACTS[head],
        "accepts": accepts("input_ids", "attention_mask", "position_ids"),
        **_LLAMA,
        **own,
    }


_LLAMA: Values = {
    "block": "sequential",
    "embed_scale": False,
    "final_norm": "norm",
    "final_softcap": 0.0,
    "fused": False,
    "lm_bias": False,
    "mlp": "gated",
    "mlp_bias": False,
    "norm_kind": "rms",
    "out": "o_proj",
    "out_bias": False,
    "places": "",
    "qk_norm": None,
    "qkv_bias": False,
    "scale": "",
    "softcap": 0.0,
}


def _is_old_reader(config: Config, head: str) -> bool:
    """Some question answering heads keep the name that the base model once had."""
    return head == "ForQuestionAnswering" and config.holds("transformer.norm.weight")


def _act(config: Config, default: str, key: str = "hidden_act") -> str:
    return config.word(key, default, ACTIVATIONS)


@family("llama.py.jinja", {"llama": "Llama"}, _HEADS, "model")
def llama(config: Config, head: str) -> Values:
    bias = config.flag("attention_bias", False)
    config.ignore("pretraining_tp")  # splits a product without changing it
    return _values(
        config,
        head,
        eos=2,
        qkv_bias=bias,
        out_bias=bias,
        mlp_bias=config.flag("mlp_bias", False),
    )


@family("llama.py.jinja", {"mistral": "Mistral"}, _HEADS, "model")
def mistral(config: Config, head: str) -> Values:
    """A window on every layer, unless it is null."""
    window = _window(config, 4096)
    return _values(
        config,
        head,
        eos=2,
        kv_heads=8,
        positions=131072,
        windows=(window, ""),
    )


@family("llama.py.jinja", {"qwen2": "Qwen2"}, _HEADS, "model")
def qwen2(config: Config, head: str) -> Values:
    """Biases on queries, keys and values; upper layers may have a window."""
    return _values(
        config,
        head,
        kv_heads=32,
        positions=32768,
        qkv_bias=True,
        windows=_upper_windows(config),
    )


@family("llama.py.jinja", {"qwen3": "Qwen3"}, _HEADS, "model")
def qwen3(config: Config, head: str) -> Values:
    """Queries and keys are normalised, one head at a time."""
    bias = config.flag("attention_bias", False)
    return _values(
        config,
        head,
        kv_heads=32,
        head_dim=128,
        positions=32768,
        qkv_bias=bias,
        out_bias=bias,
        qk_norm=("q_norm", "k_norm"),
        windows=_upper_windows(config),
    )


@family("llama.py.jinja", {"gemma": "Gemma"}, _HEADS[:4], "model")
def gemma(config: Config, head: str) -> Values:
    """Scales of norms are stored less 1; embeddings are scaled."""
    bias = config.flag("attention_bias", False)
    config.fixed(use_bidirectional_attention=False)
    act = _act(config, "gelu_pytorch_tanh")
    if config.raw("hidden_activation") is not None:  # goes before, where it is given
        act = _act(config, act, "hidden_activation")
    return _values(
        config,
        head,
        eos=1,
        tied=True,
        head_dim=256,
        positions=8192,
        act=act,
        qkv_bias=bias,
        out_bias=bias,
        norm_kind="shifted",
        embed_scale=True,
    )


@family("llama.py.jinja", {"gemma2": "Gemma2"}, _HEADS[:4], "model")
def gemma2(config: Config, head: str) -> Values:
    """Norms before and behind, scores held by tanh, a window on every other layer."""
    bias = config.flag("attention_bias", False)
    config.fixed(use_bidirectional_attention=False)
    config.ignore("cache_implementation", "hidden_act")
    depth = config.depth("num_hidden_layers", None)
    kinds = ["sliding_attention", "full_attention"] * depth
    scalar = config.number("query_pre_attn_scalar", 256.0)
    return _values(
        config,
        head,
        eos=1,
        tied=True,
        head_dim=256,
        kv_heads=4,
        positions=8192,
        act=_act(config, "gelu_pytorch_tanh", "hidden_activation"),
        qkv_bias=bias,
        out_bias=bias,
        norm_kind="shifted",
        embed_scale=True,
        block="sandwich",
        scale=f"{scalar:g}**-0.5",
        softcap=_nullable(config, "attn_logit_softcapping", 50.0),
        final_softcap=_nullable(config, "final_logit_softcapping", 30.0),
        windows=_windows(config, _window(config, 4096), kinds[:depth]),
    )


@family("llama.py.jinja", {"phi": "Phi"}, _HEADS[:4], "model")
def phi(config: Config, head: str) -> Values:
    """Attention and MLP in parallel behind one LayerNorm; half of a head is rotated."""
    if config.values.get("partial_rotary_factor") is None:
        config.values["partial_rotary_factor"] = 0.5
    normed = config.flag("qk_layernorm", False)
    return _values(
        config,
        head,
        eos=2,
        eps=config.number("layer_norm_eps", 1e-5),
        act=_act(config, "gelu_new"),
        qkv_bias=True,
        out_bias=True,
        lm_bias=True,
        out="dense",
        norm_kind="layer",
        block="parallel",
        mlp="plain",
        final_norm="final_layernorm",
        qk_norm=("q_layernorm", "k_layernorm") if normed else None,
    )


@family("llama.py.jinja", {"phi3": "Phi3"}, _HEADS[:4], "model")
def phi3(config: Config, head: str) -> Values:
    """Queries, keys and values come out of one product, the MLP's halves too."""
    return _values(
        config,
        head,
        eos=32000,
        positions=4096,
        eps=config.number("rms_norm_eps", 1e-5),
        fused=True,
        mlp="fused",
        windows=(_window(config, None), ""),
    )


# --- windows ---


def _nullable(config: Config, key: str, default: float) -> float:
    """A number whose null means none at all, as 0."""
    if key in config.values and config.values[key] is None:
        config.ignore(key)
        return 0.0
    return config.number(key, default)


def _window(config: Config, default: int | None) -> int | None:
    """`sliding_window`, where null means none."""
    if config.values.get("sliding_window", default) is None:
        config.ignore("sliding_window")
        return None
    return config.size("sliding_window", default)


def _upper_windows(config: Config) -> tuple[int | None, str]:
    """Qwen's rule: a window from layer `max_window_layers` on, where it is used."""
    used = config.flag("use_sliding_window", False)
    window = _window(config, 4096) if used else None
    config.ignore("sliding_window")
    first = config.size("max_window_layers", 28, least=0)
    depth = config.depth("num_hidden_layers", None)
    kinds = [
        "sliding_attention" if window and i >= first else "full_attention"
        for i in range(depth)
    ]
    return _windows(config, window, kinds)


def _windows(
    config: Config, window: int | None, default: list[str]
) -> tuple[int | None, str]:
    """The window, and which layers `i` have it in Python's words ("": all or none)."""
    kinds = config.raw("layer_types", default)
    if not isinstance(kinds, list) or len(kinds) != len(default):
        config.refuse("layer_types", f"a list of {len(default)} words", kinds)
        return None, ""
    for kind in kinds:
        if kind not in ("sliding_attention", "full_attention"):
            words = '"sliding_attention" or "full_attention" only'
            config.refuse("layer_types", words, kind)
            return None, ""
    local = [i for i, kind in enumerate(kinds) if kind == "sliding_attention"]
    if not local or window is None:
        return None, ""
    if len(local) == len(kinds):
        return window, ""
    if local == list(range(0, len(kinds), 2)):
        return window, "i % 2 == 0"
    if local == list(range(1, len(kinds), 2)):
        return window, "i % 2 == 1"
    if local == list(range(local[0], len(kinds))):
        return window, f"i >= {local[0]}"
    if local == list(range(len(local))):
        return window, f"i < {len(local)}"
    return window, f"i in {json.dumps(local)}"
