"""A training loop of one's own: two optimizers, clipped gradients, no Learner.

    python -m burnish.models.examples.custom_training_loop [--data FOLDER]
        [--epochs 8] [--accumulate 1]

It trains the guide's network on digits. The convolutions learn with AdamW, the rest
with momentum, each at a rate of its own. `Trainer` is where the pieces are kept
together; nothing in Burnish asks for it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from burnish import Tensor, data, nn, optim, seed
from burnish.data.sources.mnist import normalized
from burnish.models.examples.guide import DIGITS, Model, ModelConfig
from burnish.training import accuracy

CONVOLUTIONS = nn.ParamGroup.from_paths("conv1", "conv2")
REST = nn.ParamGroup.all() - CONVOLUTIONS


class Trainer:
    """A model with the optimizers of its two parts.

    accumulate: batches whose gradients are added up before a step.
    """

    def __init__(self, model: Model, accumulate: int = 1):
        self.model = model.to("cpu:autodiff")
        self.loss = nn.CrossEntropyLoss()
        self.clip = optim.ClipGlobalNorm(1.0)
        self.adam = optim.AdamW()
        self.momentum = optim.SGD(momentum=0.9)
        self.accumulate = accumulate
        self.waiting = optim.GradientsAccumulator()

    def train(self, epoch: int, batches: Iterable[Any]) -> float:
        """One epoch; the mean loss of its batches."""
        losses = []
        for iteration, (images, targets) in enumerate(batches, 1):
            output = self.model(images)
            loss = self.loss(output, targets)
            losses.append(loss.item())
            if iteration % 20 == 0:
                print(
                    f"[train, epoch {epoch}, iteration {iteration}] "
                    f"loss {losses[-1]:.3f}, accuracy {accuracy(output, targets):.1%}"
                )
            self.learn(loss / self.accumulate)
            if iteration % self.accumulate == 0:
                self.step()
        return sum(losses) / len(losses)

    def learn(self, loss: Tensor) -> None:
        """Add the gradients of a loss to those that wait."""
        gradients = optim.GradientsParams.from_grads(loss.backward(), self.model)
        self.waiting.accumulate(gradients)

    def step(self) -> None:
        """Let both optimizers take a step; each has its part of the gradients."""
        gradients = self.clip(self.waiting.grads())
        for group, optimizer, rate in (
            (CONVOLUTIONS, self.adam, 2e-3),
            (REST, self.momentum, 1e-1),
        ):
            part = {path: gradients[path] for path in group.paths(self.model)}
            optimizer.step(rate, self.model, optim.GradientsParams(part))

    def valid(self, batches: Iterable[Any]) -> tuple[float, float]:
        """The mean loss and accuracy of batches, with nothing recorded."""
        model, count, loss, right = self.model.valid(), 0, 0.0, 0.0
        for images, targets in batches:
            output, size = model(images), len(targets)
            count += size
            loss += self.loss(output, targets).item() * size
            right += accuracy(output, targets) * size
        return loss / count, right / count


def main(argv: list[str] | None = None) -> dict[str, float]:
    """Train, and give the test digits' loss and accuracy, and the training's loss."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DIGITS)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--accumulate", type=int, default=1)
    options = parser.parse_args(argv)

    seed(42)
    digits = data.MnistDataset(options.data, "train")
    unseen = data.MnistDataset(options.data, "test")
    batches = data.batches(
        digits, 64, shuffle=42, batcher=normalized, device="cpu:autodiff"
    )
    trainer = Trainer(ModelConfig().init(), options.accumulate)
    found: dict[str, float] = {}
    for epoch in range(1, options.epochs + 1):
        trained = trainer.train(epoch, batches)
        loss, right = trainer.valid(data.batches(unseen, 256, batcher=normalized))
        print(f"[valid, epoch {epoch}] loss {loss:.3f}, accuracy {right:.1%}")
        found = {"train loss": trained, "loss": loss, "accuracy": right}
    return found


if __name__ == "__main__":
    main()
