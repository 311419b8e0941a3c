"""Encoders of text: BERT and its relatives."""

from __future__ import annotations

from typing import Any

from burnish.codegen.architectures.config import Config
from burnish.codegen.architectures.family import Values, family
from burnish.codegen.architectures.words import accepts

ACTIVATIONS = (
    "gelu",
    "gelu_new",
    "gelu_pytorch_tanh",
    "gelu_fast",
    "relu",
    "silu",
    "swish",
    "tanh",
    "sigmoid",
    "mish",
    "linear",
)
"""What `hidden_act` may say."""

_HEADS = (
    "Model",
    "ForMaskedLM",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMultipleChoice",
    "ForPreTraining",
    "ForNextSentencePrediction",
)
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
_POOLED = {
    "ForSequenceClassification",
    "ForMultipleChoice",
    "ForPreTraining",
    "ForNextSentencePrediction",
}


def bert_values(config: Config, head: str, layout: str) -> Values:
    """What BERT's template and those like it want to know."""
    config.fixed(
        is_decoder=False, add_cross_attention=False, position_embedding_type="absolute"
    )
    dropout = config.rate("hidden_dropout_prob", 0.1)
    attention_dropout = config.rate("attention_probs_dropout_prob", 0.1)
    sizes: dict[str, Any] = {
        "vocab": config.size("vocab_size", None),
        "positions": config.size("max_position_embeddings", 512),
        "types": config.size("type_vocab_size", 2),
        "dim": config.size("hidden_size", None),
        "depth": config.size("num_hidden_layers", None),
        "heads": config.size("num_attention_heads", None),
        "hidden": config.size("intermediate_size", None),
    }
    if sizes["dim"] % sizes["heads"]:
        config.refuse("hidden_size", f"a multiple of {sizes['heads']}", sizes["dim"])
    if dropout:
        sizes["dropout"] = dropout
    if attention_dropout:
        sizes["attention_dropout"] = attention_dropout
    tied = config.flag("tie_word_embeddings", True)
    axes = "batch, choices, time" if head == "ForMultipleChoice" else "batch, time"
    return {
        "sizes": sizes,
        "layout": layout,
        "types": True,
        "width": "dim",
        "padding": config.raw("pad_token_id", 1 if layout == "roberta" else 0),
        "counts_tokens": False,
        "eps": config.number("layer_norm_eps", 1e-12),
        "act": config.word("hidden_act", "gelu", ACTIVATIONS),
        "dropout": dropout,
        "attention_dropout": attention_dropout,
        "drop": ", dropout" if dropout else "",
        "attention_drop": ", attention_dropout" if attention_dropout else "",
        "drops": (", dropout" if dropout else "")
        + (", attention_dropout" if attention_dropout else ""),
        "classifier_dropout": config.rate("classifier_dropout", dropout),
        "labels": config.labels(),
        "tied": tied,
        "own_bias": not tied and config.holds("decoder.bias"),
        "pooled": head in _POOLED or config.holds("pooler.dense.weight"),
        "accepts": accepts("input_ids", "attention_mask", "token_type_ids", axes=axes),
        "contract": _CONTRACTS[head],
    }


@family("bert.py.jinja", {"bert": "Bert"}, _HEADS, "bert")
def bert(config: Config, head: str) -> Values:
    return {
        **bert_values(config, head, "bert"),
        "base": "bert",
        "base_name": "BertModel",
    }


_ROBERTAS = {
    "roberta": "Roberta",
    "xlm-roberta": "XLMRoberta",
    "camembert": "Camembert",
}


@family("bert.py.jinja", _ROBERTAS, _HEADS[:6], "roberta")
def roberta(config: Config, head: str) -> Values:
    """Positions count tokens, from the padding's number on; the heads differ."""
    made = bert_values(config, head, "roberta")
    made["pooled"] = head == "ForMultipleChoice" or config.holds("pooler.dense.weight")
    prefix = _ROBERTAS[config.values["model_type"]]
    return {
        **made,
        "counts_tokens": True,
        "base": "roberta",
        "base_name": f"{prefix}Model",
    }


@family(
    "bert.py.jinja", {"electra": "Electra"}, [*_HEADS[:5], "ForPreTraining"], "electra"
)
def electra(config: Config, head: str) -> Values:
    """Embeddings may be narrower than the encoder; nothing is pooled."""
    config.ignore(
        "summary_type", "summary_use_proj", "summary_activation", "summary_last_dropout"
    )
    made = bert_values(config, head, "electra")
    narrow = config.size("embedding_size", 128)
    if narrow != made["sizes"]["dim"]:
        made["sizes"] = {"width": narrow, **made["sizes"]}
        made["width"] = "width"
    if head == "ForPreTraining":
        made["contract"] = "ids (batch, time) -> logits (batch, time)"
    return {
        **made,
        "pooled": False,
        "base": "electra",
        "base_name": "ElectraModel",
    }
