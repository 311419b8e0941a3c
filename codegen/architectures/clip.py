"""CLIP: a text tower, a vision tower, and their similarity."""

from __future__ import annotations

from typing import Any

from burnish.codegen.architectures.config import Config
from burnish.codegen.architectures.families import Values, family
from burnish.codegen.architectures.vision import patches
from burnish.codegen.architectures.words import ACTIVATIONS, accepts, trunk

_ACTIVATIONS = ("quick_gelu", *ACTIVATIONS)
_CONTRACTS = {
    "Model": "ids (texts, time), pictures -> logits, vectors",
    "ForImageClassification": "pictures -> logits (batch, labels)",
    "TextModel": "ids (batch, time) -> (batch, time, dim), (batch, dim)",
    "TextModelWithProjection": "ids (batch, time) -> vectors, (batch, time, dim)",
    "VisionModel": "pictures -> (batch, patches, dim), (batch, dim)",
    "VisionModelWithProjection": "pictures -> vectors, (batch, patches, dim)",
}


def _tower(config: Config, sizes: dict[str, Any], dim: int, heads: int) -> Values:
    sizes |= trunk(config, dim, 12, heads, 4 * dim)
    config.ignore("dropout", "projection_dim", "tie_word_embeddings")  # of others
    config.training_only("attention_dropout")
    return {
        "sizes": sizes,
        "act": config.word("hidden_act", "quick_gelu", _ACTIVATIONS),
        "eps": config.number("layer_norm_eps", 1e-5),
    }


def _text(config: Config) -> Values:
    sizes = {
        "vocab": config.size("vocab_size", 49408),
        "positions": config.size("max_position_embeddings", 77),
    }
    made = _tower(config, sizes, 512, 8)
    return {**made, "eos": config.size("eos_token_id", 49407, least=0)}


def _vision(config: Config) -> Values:
    sizes = {**patches(config, 32), "channels": config.size("num_channels", 3)}
    made = _tower(config, sizes, 768, 12)
    return {**made, "square": isinstance(sizes["image"], int)}


def _pictures(vision: Values) -> dict[str, str]:
    image = vision["sizes"]["image"]
    height, width = (image, image) if isinstance(image, int) else image
    channels = vision["sizes"]["channels"]
    return {"pixel_values": f"float32[pictures, {channels}, {height}, {width}]"}


def _names(head: str) -> Values:
    return {
        "text_name": "CLIPTextModel",
        "vision_name": "CLIPVisionModel",
        "contract": _CONTRACTS[head],
    }


@family("clip.py.jinja", {"clip": "CLIP"}, ("Model", "ForImageClassification"), "clip")
def clip(config: Config, head: str) -> Values:
    vision_config = config.inner("vision_config")
    text_config = config.inner("text_config")
    vision = _vision(vision_config)
    vision_config.unread()
    text = None
    named = _pictures(vision)
    if head == "Model":
        text = _text(text_config)
        text_config.unread()
        named = {
            "input_ids": "int64[texts, time]",
            **named,
            "attention_mask": "any[texts, time]",
        }
    return {
        **_names(head),
        "text": text,
        "vision": vision,
        "width": config.size("projection_dim", 512),
        "logit_scale": config.number("logit_scale_init_value", 2.6592),
        "labels": config.labels(),
        "accepts": accepts(**named),
    }


@family(
    "clip.py.jinja",
    {"clip_text_model": "CLIP"},
    ("TextModel", "TextModelWithProjection"),
    "text_model",
)
def clip_text(config: Config, head: str) -> Values:
    return {
        **_names(head),
        "text": _text(config),
        "vision": None,
        "width": config.size("projection_dim", 512),
        "accepts": accepts("input_ids", "attention_mask"),
    }


@family(
    "clip.py.jinja",
    {"clip_vision_model": "CLIP"},
    ("VisionModel", "VisionModelWithProjection"),
    "vision_model",
)
def clip_vision(config: Config, head: str) -> Values:
    vision = _vision(config)
    return {
        **_names(head),
        "text": None,
        "vision": vision,
        "width": config.size("projection_dim", 512),
        "accepts": accepts(**_pictures(vision)),
    }
