"""A renderer of one's own: a bar for each epoch, drawn in place while it goes.

    python -m burnish.models.examples.custom_renderer [--data FOLDER] [--epochs 5]

A renderer overrides what it wants to show: the start of a run, a batch, the end of an
epoch, the end of the run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TextIO

from burnish import data, nn, optim, seed
from burnish.data.sources.mnist import normalized
from burnish.learner import Accuracy, Learner, Loss, Progress, Renderer, Run, Supervised
from burnish.models.examples.guide import DIGITS, ModelConfig

WIDTH = 24
LEVELS = " ▁▂▃▄▅▆▇█"


class BarRenderer(Renderer):
    """`epoch 2/5 ▐███████▌  loss ▇▅▃▂▁  91.2 %`, one line an epoch.

    The bar grows with the batches; the small columns are the loss so far.
    """

    def __init__(self, file: TextIO | None = None):
        self.file = file or sys.stdout
        self.losses: list[float] = []
        self.line = ""

    def start(self, run: Run) -> None:
        print(f"{run.model}: {run.num_params:,} parameters", file=self.file)

    def step(self, progress: Progress) -> None:
        if progress.split != "train":
            return
        total = progress.total or progress.iteration
        done = WIDTH * progress.iteration // total
        loss = next(e.running for e in progress.entries if e.name == "Loss")
        shown = [*self.losses, loss]
        top = max(shown)
        columns = "".join(LEVELS[round(8 * value / top)] for value in shown)
        self.line = (
            f"epoch {progress.epoch}/{progress.epochs} "
            f"▐{'█' * done:{WIDTH}}▌  loss {columns} {loss:.3f}"
        )
        print(f"\r{self.line}", end="", file=self.file, flush=True)

    def epoch(self, split: str, epoch: int, values: dict[str, float]) -> None:
        if split == "train":
            self.losses.append(values["Loss"])
        else:
            print(f"  {values['Accuracy']:.1f} %", file=self.file)

    def end(self, summary: str, reason: str | None) -> None:
        print(f"\n{summary}", file=self.file)


def main(argv: list[str] | None = None) -> dict[str, float]:
    """Train the guide's network, and give the last epoch's metrics of the test set."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DIGITS)
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args(argv)

    seed(0)
    digits = data.MnistDataset(options.data, "train")
    unseen = data.MnistDataset(options.data, "test")
    learner = Learner(
        ModelConfig().init(),
        optim.Adam(),
        2e-3,
        step=Supervised(nn.CrossEntropyLoss()),
        metrics=[Accuracy(), Loss()],
        epochs=options.epochs,
        renderer=BarRenderer(),
    )
    learner.fit(
        data.batches(digits, 64, shuffle=0, batcher=normalized),
        data.batches(unseen, 256, batcher=normalized),
    )
    return {
        name: learner.store.epochs(name, "valid")[options.epochs]
        for name in ("Accuracy", "Loss")
    }


if __name__ == "__main__":
    main()
