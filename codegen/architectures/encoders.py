"""Encoders of text: BERT and its relatives."""

from __future__ import annotations

from typing import Any

from burnish.codegen.architectures.config import Config
from burnish.codegen.architectures.families import Values, family
from burnish.codegen.architectures.words import ACTIVATIONS, accepts, drops, trunk

_CONTRACTS = {
    "Model": "ids -> (batch, time, dim)",
    "ForMaskedLM": "ids (batch, time) -> logits (batch, time, vocab)",
    "ForSequenceClassification": "ids (batch, time) -> logits (batch, labels)",
    "ForTokenClassification": "ids (batch, time) -> logits (batch, time, labels)",
    "ForQuestionAnswering": "ids (batch, time) -> start, end (batch, time)",
    "ForMultipleChoice": "ids (batch, choices, time) -> (batch, choices)",
    "ForPreTraining": "ids -> logits (batch, time, vocab), next (batch, 2)",
    "ForNextSentencePrediction": "ids (batch, time) -> logits (batch, 2)",
}
_HEADS = tuple(_CONTRACTS)
_POOLED = {
    "ForSequenceClassification",
    "ForMultipleChoice",
    "ForPreTraining",
    "ForNextSentencePrediction",
}
_POOLERS = ("pooler.dense.weight", "pooler.weight")


def _bert_values(
    config: Config,
    head: str,
    layout: str,
    dropout: float = 0.1,
    act: str = "gelu",
) -> Values:
    """Variables of BERT's template and those like it."""
    config.fixed(
        is_decoder=False, add_cross_attention=False, position_embedding_type="absolute"
    )
    sizes: dict[str, Any] = {
        "vocab": config.size("vocab_size", None),
        "positions": config.size("max_position_embeddings", 512),
        "types": config.size("type_vocab_size", 2),
        **trunk(config, None, None, None, None),
    }
    keys = ("hidden_dropout_prob", "attention_probs_dropout_prob")
    drop = drops(config, sizes, **dict.fromkeys(keys, dropout))
    tied = config.flag("tie_word_embeddings", True)
    axes = "batch, choices, time" if head == "ForMultipleChoice" else "batch, time"
    return {
        "sizes": sizes,
        "layout": layout,
        "types": True,
        "width": "dim",
        "padding": config.token("pad_token_id", 1 if layout == "roberta" else 0),
        "counts_tokens": False,
        "eps": config.number("layer_norm_eps", 1e-12),
        "act": config.word("hidden_act", act, ACTIVATIONS),
        **drop,
        "classifier_dropout": config.rate("classifier_dropout", drop["dropout"]),
        "labels": config.labels(),
        "tied": tied,
        "own_bias": not tied and config.holds("decoder.bias"),
        "pooled": head in _POOLED or (head == "Model" and config.holds(*_POOLERS)),
        "accepts": accepts("input_ids", "attention_mask", "token_type_ids", axes=axes),
        "contract": _CONTRACTS[head],
    }


@family("bert.py.jinja", {"bert": "Bert"}, _HEADS, "bert")
def bert(config: Config, head: str) -> Values:
    return _bert_values(config, head, "bert")


_ROBERTAS = {
    "roberta": "Roberta",
    "xlm-roberta": "XLMRoberta",
    "camembert": "Camembert",
}


@family("bert.py.jinja", _ROBERTAS, _HEADS[:6], "roberta")
def roberta(config: Config, head: str) -> Values:
    """Positions count tokens, from the padding's number on; the heads differ."""
    made = _bert_values(config, head, "roberta")
    if head == "ForSequenceClassification":
        made["pooled"] = False
    return {**made, "counts_tokens": True}


@family(
    "bert.py.jinja", {"electra": "Electra"}, [*_HEADS[:5], "ForPreTraining"], "electra"
)
def electra(config: Config, head: str) -> Values:
    """Embeddings may be narrower than the encoder; nothing is pooled."""
    config.ignore(
        "summary_type", "summary_use_proj", "summary_activation", "summary_last_dropout"
    )
    made = _bert_values(config, head, "electra")
    narrow = config.size("embedding_size", 128)
    if narrow != made["sizes"]["dim"]:
        made["sizes"] = {"width": narrow, **made["sizes"]}
        made["width"] = "width"
    if head == "ForPreTraining":
        made["contract"] = "ids (batch, time) -> logits (batch, time)"
    return {**made, "pooled": False}


@family("albert.py.jinja", {"albert": "Albert"}, _HEADS[:6], "albert")
def albert(config: Config, head: str) -> Values:
    """One layer, or a few, used again and again; embeddings are narrower."""
    config.ignore("embedding_size", "net_structure_type", "num_memory_blocks")
    config.fixed(down_scale_factor=1, gap_size=0)
    groups = config.size("num_hidden_groups", 1)
    made = _bert_values(config, head, "albert", dropout=0.0, act="gelu_new")
    sizes = {"width": config.size("embedding_size", 128), **made["sizes"]}
    if groups > 1:
        sizes = {"groups": groups, **sizes}
    return {
        **made,
        "sizes": sizes,
        "groups": groups if groups > 1 else 0,
        "inner": config.depth("inner_group_num", 1),
        "classifier_dropout": config.rate("classifier_dropout_prob", 0.1),
    }


@family("distilbert.py.jinja", {"distilbert": "DistilBert"}, _HEADS[:6], "distilbert")
def distilbert(config: Config, head: str) -> Values:
    """No token types, nothing is pooled."""
    config.ignore("sinusoidal_pos_embds", "tie_weights_")  # what weights start as
    sizes: dict[str, Any] = {
        "vocab": config.size("vocab_size", 30522),
        "positions": config.size("max_position_embeddings", 512),
        **trunk(config, 768, 6, 12, 3072, keys="dim n_layers n_heads hidden_dim"),
    }
    axes = "batch, choices, time" if head == "ForMultipleChoice" else "batch, time"
    return {
        "sizes": sizes,
        **drops(config, sizes, dropout=0.1, attention_dropout=0.1),
        "pooled_dropout": config.rate("seq_classif_dropout", 0.2),
        "answer_dropout": config.rate("qa_dropout", 0.1),
        "padding": config.token("pad_token_id", 0),
        "act": config.word("activation", "gelu", ACTIVATIONS),
        "tied": config.flag("tie_word_embeddings", True),
        "labels": config.labels(),
        "accepts": accepts("input_ids", "attention_mask", axes=axes),
        "contract": _CONTRACTS[head],
    }
