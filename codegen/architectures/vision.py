"""Vision: vision transformers and convolutional networks."""

from __future__ import annotations

from typing import Any

from burnish.codegen.architectures.config import Config
from burnish.codegen.architectures.families import Values, family
from burnish.codegen.architectures.words import ACTIVATIONS, accepts, drops, trunk

_CONTRACTS = {
    "Model": "pixel_values (batch, channels, height, width) -> features",
    "ForImageClassification": "pixel_values -> logits (batch, labels)",
    "ForImageClassificationWithTeacher": "pixel_values -> logits (batch, labels)",
}
_HEADS = ("Model", "ForImageClassification")


def pixels(channels: int, height: int | str = "_", width: int | str = "_") -> str:
    """The decorator of a forward that takes pictures."""
    return accepts(pixel_values=f"float32[batch, {channels}, {height}, {width}]")


def pair(config: Config, key: str, default: int) -> list[int]:
    """Height and width; the configuration may have one number for both."""
    value = config.raw(key, default)
    if isinstance(value, list):
        sizes = config.sizes(key, [default, default])
        if len(sizes) == 2:
            return sizes
        config.refuse(key, "one size or two", value)
    return [config.size(key, default)] * 2


def patches(config: Config, patch: int) -> dict[str, Any]:
    """`image` and `patch`, as one number each where pictures and patches are square."""
    image = pair(config, "image_size", 224)
    patch_size = pair(config, "patch_size", patch)
    if any(n < p for n, p in zip(image, patch_size, strict=True)):
        config.refuse("image_size", f"at least {patch_size}", image)
    if image[0] == image[1] and patch_size[0] == patch_size[1]:
        return {"image": image[0], "patch": patch_size[0]}
    return {"image": tuple(image), "patch": tuple(patch_size)}


@family("vit.py.jinja", {"vit": "ViT"}, _HEADS, "vit")
@family(
    "vit.py.jinja",
    {"deit": "DeiT"},
    [*_HEADS, "ForImageClassificationWithTeacher"],
    "deit",
)
def transformer(config: Config, head: str) -> Values:
    """DeiT has a second token, which learns from a teacher."""
    config.ignore("encoder_stride", "tie_word_embeddings")  # of other heads
    sizes: dict[str, Any] = {
        **patches(config, 16),
        "channels": config.size("num_channels", 3),
        **trunk(config, 768, 12, 12, 3072),
    }
    image = pair(config, "image_size", 224)
    pooler_size = config.size("pooler_output_size", sizes["dim"])
    return {
        "sizes": sizes,
        **drops(
            config, sizes, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
        ),
        "square": isinstance(sizes["image"], int),
        "distilled": config.values["model_type"] == "deit",
        "qkv_bias": config.flag("qkv_bias", True),
        "eps": config.number("layer_norm_eps", 1e-12),
        "act": config.word("hidden_act", "gelu", ACTIVATIONS),
        "pooled": head == "Model" and config.holds("pooler.dense.weight"),
        "pooler_size": pooler_size if pooler_size != sizes["dim"] else None,
        "pooler_act": config.word("pooler_act", "tanh", ACTIVATIONS),
        "labels": config.labels(),
        "accepts": pixels(sizes["channels"], *image),
        "contract": _CONTRACTS[head],
    }


def _convolutional(config: Config, head: str, widths: list[int]) -> Values:
    config.ignore("out_features", "out_indices", "stage_names")  # of a backbone
    config.ignore("tie_word_embeddings")
    widths = config.sizes("hidden_sizes", widths)
    depths = config.sizes("depths", [3, 4, 6, 3])
    if len(widths) != len(depths) or sum(depths) > config.most_layers:
        expected = f"{len(widths)} numbers up to {config.most_layers}"
        config.refuse("depths", expected, depths)
        depths = [1] * len(widths)
    channels = config.size("num_channels", 3)
    return {
        "sizes": {
            "channels": channels,
            "widths": tuple(widths),
            "depths": tuple(depths),
        },
        "labels": config.labels(),
        "accepts": pixels(channels),
        "contract": _CONTRACTS[head],
    }


@family("resnet.py.jinja", {"resnet": "ResNet"}, _HEADS, "resnet")
def resnet(config: Config, head: str) -> Values:
    made = _convolutional(config, head, [256, 512, 1024, 2048])
    made["sizes"]["stem"] = config.size("embedding_size", 64)
    kind = config.word("layer_type", "bottleneck", ("basic", "bottleneck"))
    return {
        **made,
        "bottleneck": kind == "bottleneck",
        "early": config.flag("downsample_in_bottleneck", False),
        "first_stride": config.flag("downsample_in_first_stage", False),
        "act": config.word("hidden_act", "relu", ACTIVATIONS),
    }


@family("convnext.py.jinja", {"convnext": "ConvNext"}, _HEADS, "convnext")
def convnext(config: Config, head: str) -> Values:
    config.ignore("image_size", "num_stages")
    config.training_only("drop_path_rate")
    made = _convolutional(config, head, [96, 192, 384, 768])
    made["sizes"]["patch"] = config.size("patch_size", 4)
    return {
        **made,
        "layer_scale": config.number("layer_scale_init_value", 1e-6),
        "act": config.word("hidden_act", "gelu", ACTIVATIONS),
        "eps": config.number("layer_norm_eps", 1e-12),
    }
