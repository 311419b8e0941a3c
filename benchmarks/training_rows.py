"""The networks of training.py and the numbers they train on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from networks import (
    cnn,
    convnext_t,
    efficientnet_b0,
    gan,
    mobilenet_v2,
    resnet18,
    resnet50,
    unet,
)
from sequences import tagger, transformer, vit


class Row(NamedTuple):
    """make: of nn and functions, the network. images, words: the inputs' shape.

    classes: of the labels; `labels` is their shape. trained: texts of which a name has
    one where its parameter is trained; () trains all. reads_places: whether the network
    takes the positions of words or patches, so many, too.
    """

    make: Callable[[Any, Any], Any]
    images: tuple[int, ...] = ()
    words: tuple[int, ...] = ()
    labels: tuple[int, ...] = ()
    classes: int = 10
    places: int = 0
    trained: tuple[str, ...] = ()


def _pictures(make: Callable[[Any], Any], count: int, size: int) -> Row:
    return Row(lambda nn, _: make(nn), (count, 3, size, size))


def _words(count: int, length: int, **sizes: Any) -> Row:
    return Row(
        lambda nn, f: transformer(nn, f, **sizes),
        words=(count, length),
        places=length,
    )


ROWS = {
    "guide CNN, 64 x 28": Row(lambda nn, f: cnn(nn, f.relu), (64, 1, 28, 28)),
    "ResNet-18, 16 x 32": _pictures(resnet18, 16, 32),
    "ResNet-18, 8 x 112": _pictures(resnet18, 8, 112),
    "ResNet-18, 2 x 224": _pictures(resnet18, 2, 224),
    "ResNet-50, 8 x 32": _pictures(resnet50, 8, 32),
    "ResNet-50, 4 x 112": _pictures(resnet50, 4, 112),
    "ResNet-50, 1 x 224": _pictures(resnet50, 1, 224),
    "MobileNetV2, 16 x 96": _pictures(mobilenet_v2, 16, 96),
    "EfficientNet-B0, 8 x 96": _pictures(efficientnet_b0, 8, 96),
    "ConvNeXt-T, 4 x 64": _pictures(convnext_t, 4, 64),
    "ViT, 8 x 64": Row(vit, (8, 3, 64, 64), places=64),
    "ViT, dropout, 8 x 64": Row(
        lambda nn, f: vit(nn, f, dropout=0.1), (8, 3, 64, 64), places=64
    ),
    "transformer of 2, 8 x 128": _words(8, 128),
    "transformer of 2, dropout": _words(8, 128, dropout=0.1),
    "transformer of 6, 4 x 128": _words(4, 128, depth=6),
    "MiniLM, 4 x 64": _words(4, 64, depth=6, width=384, heads=12),
    "GPT-2 small, LoRA, 1 x 64": Row(
        lambda nn, f: transformer(
            nn, f, depth=12, width=768, heads=12, is_causal=True, rank=8
        ),
        words=(1, 64),
        places=64,
        labels=(1, 64),
        classes=5000,
        trained=(".down.", ".up."),
    ),
    "LSTM, 16 x 32": Row(
        lambda nn, _: tagger(nn), words=(16, 32), labels=(16, 32), classes=20
    ),
    "U-Net, 2 x 64": Row(unet, (2, 3, 64, 64), labels=(2, 64, 64), classes=2),
    "Wasserstein GAN, 16 x 32": Row(lambda nn, _: gan(nn), (16, 3, 32, 32)),
}


def given(row: Row, seed: int = 0) -> tuple[list[Any], Any]:
    """The inputs of a row, and its labels."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 5000, row.words)
    if row.images:
        first = rng.normal(size=row.images).astype(np.float32)
    inputs = [first, np.arange(row.places)] if row.places else [first]
    labels = rng.integers(0, row.classes, row.labels or first.shape[:1])
    if row.make is ROWS["Wasserstein GAN, 16 x 32"].make:
        labels = rng.normal(size=(len(first), 64, 1, 1)).astype(np.float32)
    return inputs, labels


def weights(model: Any, seed: int = 0) -> dict[str, Any]:
    """The same weights for both libraries, by the names and shapes of parameters."""
    found = {}
    for i, (name, param) in enumerate(sorted(model.named_parameters())):
        shape = tuple(param.shape)
        if len(shape) > 1:
            limit = float(np.prod(shape[1:])) ** -0.5
            rng = np.random.default_rng([seed, i] if seed else i)
            found[name] = rng.uniform(-limit, limit, shape).astype(np.float32)
        else:
            is_scale = "weight" in name
            found[name] = np.full(shape, float(is_scale), np.float32)
    return found


def is_trained(row: Row, name: str) -> bool:
    return not row.trained or any(text in name for text in row.trained)
