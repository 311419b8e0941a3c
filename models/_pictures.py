"""Fine-tuning of an image classifier of the gallery, on pictures that are drawn here.

Stripes in two shades of red, green, blue or grey: a few steps teach them apart.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from burnish import data, nn, optim, seed
from burnish.models._gallery import BY_MODULE, weights
from burnish.models._originals import OriginalError
from burnish.training import accuracy, train

CLASSES = ("red", "green", "blue", "grey")
COLOURS = np.where(np.eye(4, 3) > 0, 2.5, -1.5).astype(np.float32)
COLOURS[3] = 1.5
SIZE = 224


def draw(count: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Pictures (count, 3, 224, 224) of mean about 0, and labels (count,)."""
    labels = np.arange(count) % len(CLASSES)
    y, x = np.mgrid[-1 : 1 : SIZE * 1j, -1 : 1 : SIZE * 1j].astype(np.float32)
    pictures = random.normal(0, 0.3, (count, 3, SIZE, SIZE)).astype(np.float32)
    for picture, label in zip(pictures, labels, strict=True):
        down, right = random.uniform(-20, 20, 2)
        shade = np.where(np.sin(down * y + right * x) > 0, 1.0, 0.5)
        picture += COLOURS[label][:, None, None] * shade
    return pictures, labels


@dataclass(frozen=True)
class Task:
    """One network, how to give it a new last layer, and what to train it with."""

    module: str
    new_head: Callable[[nn.Module], nn.Module]  #: puts it there and returns it
    rate: float  #: for the last layer alone; all of them learn a tenth as fast


def main(task: Task, description: str | None) -> int:
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--layers", choices=("last", "all"), default="last", help="which ones learn"
    )
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--device", default="cpu", help='"cpu" or "cuda"')
    parser.add_argument("--out", type=Path, metavar="FILE", help="save the weights")
    options = parser.parse_args()

    seed(0)
    model = imported(task.module)
    head = task.new_head(model)
    if options.layers == "last":
        model.freeze()
        head.unfreeze()
    model.to(options.device)

    random = np.random.default_rng(0)
    unseen = draw(16, random)
    learned = sum(param.size for param in model.parameters() if param.trainable)
    print(f"{learned:,} of {model.num_params:,} parameters learn {', '.join(CLASSES)}")
    print(f"before: {score(model, *unseen):.0%} of 16 unseen pictures")
    statistics = moving(model)
    examples = draw(options.steps * options.batch, random)
    batches = data.batches(examples, options.batch, device=model.device.autodiff())
    rate = task.rate if options.layers == "last" else task.rate / 10
    for step in train(model, nn.cross_entropy, batches, optim.Adam(), rate):
        print(f"step {step.index:3}  loss {step.loss:.3f}", flush=True)
    print(f"after: {score(model, *unseen):.0%}")
    if statistics:
        pairs = zip(moving(model), statistics, strict=True)
        most = max(float(np.abs(new - old).max()) for new, old in pairs)
        print(f"{len(statistics)} running statistics moved, by up to {most:.2f}")
    if options.out:
        model.save_file(options.out)
        print(options.out)
    return 0


def imported(module: str) -> nn.Module:
    """The network with its original's weights, or with fresh ones and a note."""
    model: type[nn.Module] = BY_MODULE[module].model()
    try:
        return model.from_file(weights(module))
    except OriginalError as error:
        print(f"note: {error}; starting from fresh weights", file=sys.stderr)
        return model()


def score(model: nn.Module, pictures: np.ndarray, labels: np.ndarray) -> float:
    """The share of pictures that the model names rightly."""
    return accuracy(model.valid()(pictures), labels)


def moving(model: nn.Module) -> list[np.ndarray]:
    """The running means and variances of batch normalization."""
    return [
        np.asarray(buffer)
        for path, buffer in model.named_buffers()
        if path.rpartition(".")[2] in ("running_mean", "running_var")
    ]
