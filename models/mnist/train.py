"""Fine-tune the imported network for black ink on white paper.

    python -m burnish.models.mnist.train [--epochs 5] [--device cpu] [--out FILE]

It was trained on white strokes on black and reads inverted digits worse than a guess.
A few seconds of training on 2,000 of them change that. The weights are saved as a
safetensors file, which PyTorch opens too.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import Literal

import numpy as np

from burnish import data, nn, optim, seed
from burnish.training import Step, accuracy, train

DIGITS = Path(__file__).parent / "digits"
BATCH = 64
RATE = 2e-3


def digits(split: Literal["train", "test"]) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, 28, 28), 0 black and 1 white, and labels (n,)."""
    found = data.MnistDataset(DIGITS, split)
    return found.images.astype(np.float32) / 255, found.labels


def normalised(images: np.ndarray) -> np.ndarray:
    """What the network takes: mean 0 and deviation 1 over MNIST."""
    return (images - 0.1307) / 0.3081


def score(model: nn.Module, images: np.ndarray, labels: np.ndarray) -> float:
    """The share of images that the model reads rightly."""
    return accuracy(model.valid()(normalised(images)), labels)


def fine_tune(
    model: nn.Module, images: np.ndarray, labels: np.ndarray, epochs: int
) -> Iterator[Step]:
    """Train `model` in place while the steps are asked for."""
    epoch = data.batches(
        (normalised(images), labels),
        BATCH,
        shuffle=0,
        device=model.device.autodiff(),
    )
    batches = chain.from_iterable(repeat(epoch, epochs))
    return train(model, nn.cross_entropy, batches, optim.AdamW(), RATE)


def main() -> None:
    from burnish.models.mnist.mnist import Model

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--device", default="cpu", help='"cpu" or "cuda"')
    parser.add_argument("--out", type=Path, default=Path("tuned.safetensors"))
    options = parser.parse_args()

    seed(0)
    images, labels = digits("train")
    unseen, answers = digits("test")
    model = Model.from_file().to(options.device)
    print(f"before: {score(model, 1 - unseen, answers):.1%}")
    for step in fine_tune(model, 1 - images, labels, options.epochs):
        if step.index % 20 == 0:
            print(f"step {step.index:4}  loss {step.loss:.3f}")
    print(f"after: {score(model, 1 - unseen, answers):.1%}")
    model.save_file(options.out)
    print(options.out)


if __name__ == "__main__":
    main()
