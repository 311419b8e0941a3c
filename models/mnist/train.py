"""Fine-tune the imported MNIST network for black ink on white paper.

    python -m burnish.models.mnist.train [--epochs 5] [--out tuned.safetensors]

The network was trained on white strokes on black. This script inverts the digits,
trains for a few seconds and saves a weights file that PyTorch can open too.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from burnish import Tensor, data, nn, optim, seed

DIGITS = Path(__file__).parent / "digits"
MEAN, DEVIATION = 0.1307, 0.3081
RATE = 2e-3
BATCH = 64


def digits(split: str) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, 28, 28) in 0..1 and labels (n,) of "train" or "t10k"."""
    images = data.read_idx(DIGITS / f"{split}-images-idx3-ubyte.gz")
    labels = data.read_idx(DIGITS / f"{split}-labels-idx1-ubyte.gz")
    return images.astype(np.float32) / 255, labels.astype(np.int64)


def normalise(images: np.ndarray) -> np.ndarray:
    """What the network was trained on: mean 0, deviation 1."""
    return (images - MEAN) / DEVIATION


def accuracy(model: nn.Module, images: np.ndarray, labels: np.ndarray) -> float:
    """The share of images whose largest logit is the label's."""
    logits = model.valid()(Tensor(normalise(images), device=model.device.inner()))
    return float((logits.numpy().argmax(1) == labels).mean())


def fine_tune(
    model: nn.Module, images: np.ndarray, labels: np.ndarray, epochs: int = 5
) -> Iterator[float]:
    """Train `model` in place, on an autodiff device; each step's loss."""
    optimizer = optim.AdamW()
    generator = np.random.default_rng(0)
    for _ in range(epochs):
        order = generator.permutation(len(images))
        for start in range(0, len(images), BATCH):
            chosen = order[start : start + BATCH]
            logits = model(Tensor(normalise(images[chosen]), device=model.device))
            loss = nn.cross_entropy(logits, Tensor(labels[chosen], device=model.device))
            optimizer.step(RATE, model, loss.backward())
            yield loss.item()


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
    unseen, answers = digits("t10k")
    model = Model.from_file().to(f"{options.device}:autodiff")
    print(f"before: {accuracy(model, 1 - unseen, answers):.1%}")
    for step, loss in enumerate(fine_tune(model, 1 - images, labels, options.epochs)):
        if step % 20 == 0:
            print(f"step {step:4}  loss {loss:.3f}")
    print(f"after: {accuracy(model, 1 - unseen, answers):.1%}")
    model.save_file(options.out)
    print(options.out)


if __name__ == "__main__":
    main()
