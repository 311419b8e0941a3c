"""The guide: a convolutional network learns to read digits, with a Learner.

    python -m burnish.models.examples.guide [--data FOLDER] [--epochs 10]
        [--run runs/guide] [--resume]

FOLDER holds MNIST's four files; without it the few digits that ship are used. The run's
directory has the log, the metrics of every epoch, checkpoints and the configuration;
`burnish report runs/guide` makes a page of it. A run that was stopped goes on with
--resume.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from burnish import Tensor, data, nn, ops, optim, seed
from burnish.config import Config
from burnish.data.sources.mnist import normalized
from burnish.learner import (
    Accuracy,
    Evaluator,
    KeepBest,
    KeepLast,
    Learner,
    Loss,
    Supervised,
)

DIGITS = Path(__file__).parent.parent / "mnist" / "digits"


@dataclass
class ModelConfig(Config):
    """Sizes of the network."""

    num_classes: int = 10
    hidden_size: int = 512
    dropout: float = 0.3

    def init(self) -> Model:
        """A network with fresh weights."""
        return Model(self.num_classes, self.hidden_size, self.dropout)


class Model(nn.Module):
    """(batch, 28, 28) -> (batch, classes)"""

    def __init__(self, num_classes: int, hidden_size: int, dropout: float):
        self.conv1 = nn.Conv2d(1, 8, 3)
        self.conv2 = nn.Conv2d(8, 16, 3)
        self.pool = nn.AdaptiveAvgPool2d(8)
        self.dropout = nn.Dropout(dropout)
        self.linear1 = nn.Linear(16 * 8 * 8, hidden_size)
        self.linear2 = nn.Linear(hidden_size, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        x = images.unsqueeze(1)  # one channel
        x = self.dropout(self.conv1(x))
        x = self.dropout(self.conv2(x))
        x = self.pool(ops.relu(x)).flatten(1)
        x = ops.relu(self.dropout(self.linear1(x)))
        return self.linear2(x)


@dataclass
class TrainingConfig(Config):
    """Everything that a run depends on."""

    model: ModelConfig = field(default_factory=ModelConfig)
    num_epochs: int = 10
    batch_size: int = 64
    seed: int = 42
    learning_rate: float = 2e-3


def shifted(item: Any, generator: np.random.Generator) -> Any:
    """A digit moved by up to a pixel; its margin is wide enough."""
    image, label = item
    return np.roll(image, generator.integers(-1, 2, 2), (0, 1)), label


def train(
    config: TrainingConfig, folder: Path, run: Path, resume: bool = False
) -> dict[str, float]:
    """Train on the training digits of `folder`; the metrics of its test digits."""
    run.mkdir(parents=True, exist_ok=True)
    config.save(run / "config.json")
    seed(config.seed)
    digits = data.MnistDataset(folder, "train")
    batches = data.batches(
        digits,
        config.batch_size,
        shuffle=config.seed,
        augment=shifted,
        seed=config.seed,
        batcher=normalized,
    )
    unseen = data.batches(data.MnistDataset(folder, "test"), 256, batcher=normalized)
    step = Supervised(nn.CrossEntropyLoss())
    metrics = [Accuracy(), Loss()]
    learner = Learner(
        config.model.init(),
        optim.Adam(),
        optim.Cosine(config.learning_rate, config.num_epochs * len(batches)),
        step=step,
        metrics=metrics,
        epochs=config.num_epochs,
        directory=run,
        checkpoints=[KeepLast(1), KeepBest("Accuracy")],
        resume="last" if resume else None,
        overwrite=not resume,
    )
    model = learner.fit(batches, unseen)
    model.save_file(run / "model.safetensors")
    return Evaluator(model, step=step, metrics=metrics).eval(unseen)


def infer(run: Path, images: np.ndarray) -> np.ndarray:
    """What the network of a run reads in images (n, 28, 28) of 0 to 255."""
    config = TrainingConfig.load(run / "config.json")
    model = config.model.init().load_file(run / "model.safetensors")
    pixels, _ = normalized(images, np.zeros(len(images)))
    return model(Tensor(pixels)).argmax(1).numpy()


def main(argv: list[str] | None = None) -> dict[str, float]:
    """Train, read some test digits, and give the test digits' metrics."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DIGITS)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--run", type=Path, default=Path("runs/guide"))
    parser.add_argument("--resume", action="store_true", help="go on with the run")
    options = parser.parse_args(argv)

    config = TrainingConfig(num_epochs=options.epochs)
    found = train(config, options.data, options.run, options.resume)
    test = data.MnistDataset(options.data, "test")
    print("read:", infer(options.run, test.images[:8]), "are:", test.labels[:8])
    return found


if __name__ == "__main__":
    main()
