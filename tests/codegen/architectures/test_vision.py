"""Networks for pictures, with every head and several configurations each."""

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

VIT: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "image_size": 16,
    "patch_size": 8,
}
OTHER = {
    "hidden_act": "relu",
    "qkv_bias": False,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "num_channels": 1,
    "num_labels": 5,
}
RESNET: dict[str, Any] = {
    "embedding_size": 8,
    "hidden_sizes": [16, 24, 32],
    "depths": [2, 1, 2],
}
CONVNEXT: dict[str, Any] = {
    "hidden_sizes": [8, 16],
    "depths": [2, 1],
    "num_stages": 2,
    "layer_scale_init_value": 0.5,
}
CASES = [
    ("ViTModel", VIT),
    ("ViTModel", VIT | {"pooler_output_size": 7, "pooler_act": "relu"}),
    ("ViTForImageClassification", VIT),
    ("ViTForImageClassification", VIT | OTHER),
    ("DeiTModel", VIT),
    ("DeiTForImageClassification", VIT | OTHER),
    ("DeiTForImageClassificationWithTeacher", VIT),
    ("ResNetModel", RESNET),
    ("ResNetForImageClassification", RESNET),
    (
        "ResNetForImageClassification",
        RESNET | {"layer_type": "basic", "num_channels": 1, "num_labels": 5},
    ),
    (
        "ResNetModel",
        RESNET
        | {
            "hidden_act": "silu",
            "downsample_in_first_stage": True,
            "downsample_in_bottleneck": True,
        },
    ),
    ("ConvNextModel", CONVNEXT),
    ("ConvNextForImageClassification", CONVNEXT),
    (
        "ConvNextForImageClassification",
        CONVNEXT | {"layer_scale_init_value": 0.0, "hidden_act": "relu"},
    ),
]


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_numbers_agree_with_transformers(
    name: str, options: dict[str, Any], tmp_path: Path
) -> None:
    config = getattr(transformers, name).config_class(**options)
    network = hugging_face(name, config)
    for buffer_name, buffer in network.named_buffers():
        if buffer_name.endswith(("running_mean", "running_var")):
            buffer += torch.rand_like(buffer)
    size = 16 if "image_size" in options else 64
    shape = (2, config.num_channels, size, size)
    pictures = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    Folder(network, tmp_path).check(pixel_values=pictures)


def test_pictures_that_are_not_square(tmp_path: Path) -> None:
    options = VIT | {"image_size": [16, 24], "patch_size": [4, 8]}
    network = hugging_face("ViTModel", transformers.ViTConfig(**options))
    pictures = np.random.default_rng(0).normal(size=(2, 3, 16, 24))
    Folder(network, tmp_path).check(pixel_values=pictures.astype(np.float32))


CLIP_TEXT: dict[str, Any] = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "vocab_size": 50,
    "max_position_embeddings": 12,
    "eos_token_id": 49,
}
CLIP_VISION = VIT | {"hidden_act": "quick_gelu"}


@pytest.mark.parametrize(
    ("text", "vision"),
    [({}, {}), ({"eos_token_id": 2}, {"hidden_act": "gelu", "layer_norm_eps": 1e-6})],
    ids=str,
)
def test_clip(text: dict[str, Any], vision: dict[str, Any], tmp_path: Path) -> None:
    config = transformers.CLIPConfig(
        text_config=CLIP_TEXT | text,
        vision_config=CLIP_VISION | vision,
        projection_dim=10,
    )
    rng = np.random.default_rng(0)
    texts = batch((9, 5, 7), vocab=49)
    for row in texts["input_ids"]:
        row[np.flatnonzero(row)[-1]] = 49
    pictures = rng.normal(size=(2, 3, 16, 16)).astype(np.float32)
    made = Folder(hugging_face("CLIPModel", config), tmp_path)
    made.check(**texts, pixel_values=pictures)


@pytest.mark.parametrize(
    "name",
    [
        "CLIPTextModel",
        "CLIPTextModelWithProjection",
        "CLIPVisionModel",
        "CLIPVisionModelWithProjection",
        "CLIPForImageClassification",
    ],
)
def test_half_of_clip(name: str, tmp_path: Path) -> None:
    if name == "CLIPForImageClassification":
        config = transformers.CLIPConfig(
            text_config=CLIP_TEXT, vision_config=CLIP_VISION
        )
    elif "Text" in name:
        config = transformers.CLIPTextConfig(**CLIP_TEXT, projection_dim=10)
    else:
        config = transformers.CLIPVisionConfig(**CLIP_VISION, projection_dim=10)
    made = Folder(hugging_face(name, config), tmp_path)
    if "Text" in name:
        made.check(**batch((9, 9)))
    else:
        shape = (2, 3, 16, 16)
        pictures = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        made.check(pixel_values=pictures)
