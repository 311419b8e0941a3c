"""BERT and its relatives, with every head and several configurations each."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("transformers")

import transformers

from tests.harness.folders import Folder, batch, hugging_face

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "vocab_size": 50,
    "max_position_embeddings": 20,
}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
HEADS = (
    "Model",
    "ForMaskedLM",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
)
CASES = [
    *((f"Bert{head}", {}) for head in HEADS),
    ("BertForPreTraining", {}),
    ("BertForNextSentencePrediction", NO_DROPOUT),
    ("BertModel", {"hidden_act": "gelu_new", "type_vocab_size": 3, **NO_DROPOUT}),
    ("BertForMaskedLM", {"hidden_act": "relu", "tie_word_embeddings": False}),
    ("BertForSequenceClassification", {"num_labels": 5, "classifier_dropout": 0.3}),
    ("BertForTokenClassification", {"num_attention_heads": 1, "layer_norm_eps": 1e-5}),
    *((f"Roberta{head}", {"type_vocab_size": 1}) for head in HEADS),
    ("RobertaForMaskedLM", {"tie_word_embeddings": False, "pad_token_id": 2}),
    ("RobertaForSequenceClassification", NO_DROPOUT | {"hidden_act": "silu"}),
    *((f"XLMRoberta{head}", {}) for head in HEADS),
    *((f"Camembert{head}", {}) for head in HEADS[1:3]),
    *((f"Electra{head}", {"embedding_size": 16}) for head in HEADS),
    ("ElectraForPreTraining", {"embedding_size": 32}),
    *((f"Albert{head}", {"embedding_size": 16}) for head in HEADS),
    (
        "AlbertForMaskedLM",
        {
            "num_hidden_layers": 5,
            "num_hidden_groups": 2,
            "inner_group_num": 2,
            "hidden_act": "relu",
            "hidden_dropout_prob": 0.1,
            "attention_probs_dropout_prob": 0.1,
        },
    ),
    ("ElectraForMaskedLM", {"tie_word_embeddings": False, "hidden_act": "relu"}),
]


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_numbers_agree_with_transformers(
    name: str, options: dict[str, object], tmp_path: Path
) -> None:
    kind = getattr(transformers, name).config_class
    config = kind(**(SMALL | options))
    case = Folder(hugging_face(name, config), tmp_path)
    case.check(**batch(pad=config.pad_token_id))


def test_choices(tmp_path: Path) -> None:
    network = hugging_face(
        "BertForMultipleChoice", transformers.BertConfig(**SMALL, **NO_DROPOUT)
    )
    inputs = {name: array[:, None] for name, array in batch().items()}
    Folder(network, tmp_path).check(**inputs)


def test_a_model_without_pooling(tmp_path: Path) -> None:
    network = transformers.BertModel(
        transformers.BertConfig(**SMALL), add_pooling_layer=False
    )
    case = Folder(network.eval(), tmp_path)
    assert "Pooler" not in case.text
    case.check_source()
    case.check_numbers(network, batch())


@pytest.mark.parametrize("head", [*HEADS, "ForMultipleChoice"])
@pytest.mark.parametrize("rate", [0.0, 0.1])
def test_distilbert(head: str, rate: float, tmp_path: Path) -> None:
    config = transformers.DistilBertConfig(
        dim=32,
        n_layers=2,
        n_heads=4,
        hidden_dim=40,
        vocab_size=50,
        max_position_embeddings=20,
        dropout=rate,
        attention_dropout=rate,
        seq_classif_dropout=rate,
        qa_dropout=rate,
        activation="gelu" if rate else "relu",
    )
    inputs = batch()
    if head == "ForMultipleChoice":
        inputs = {name: array[:, None] for name, array in inputs.items()}
    Folder(hugging_face(f"DistilBert{head}", config), tmp_path).check(**inputs)
