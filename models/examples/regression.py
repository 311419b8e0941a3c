"""Regression on a CSV file: prices of houses from eight numbers about them.

    python -m burnish.models.examples.regression [--file houses.csv] [--rows 4000]
        [--epochs 20] [--run runs/regression]

A file that is not there is made up first. Numbers are brought to mean 0 and deviation 1
with what the training part says of them; the test part is not looked at before the
end.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np

from burnish import Tensor, data, nn, optim, seed
from burnish.learner import Evaluator, Learner, Loss, Metric, Moment, Supervised

COLUMNS = (
    "income", "age", "rooms", "bedrooms", "people", "household", "north", "east",
)  # fmt: skip
TARGET = "price"


def make_up(path: Path, rows: int) -> None:
    """Write houses whose price depends on the columns in a curved way, with noise."""
    rng = np.random.default_rng(1)
    income = rng.gamma(3.5, 1.1, rows)
    age = rng.uniform(1, 52, rows)
    rooms = rng.normal(5.4, 1.2, rows).clip(1)
    bedrooms = (rooms / 5 + rng.normal(0, 0.2, rows)).clip(0.5)
    people = rng.lognormal(7, 0.7, rows)
    household = rng.gamma(9, 0.33, rows)
    north, east = rng.uniform(-1, 1, (2, rows))
    coast = np.exp(-8 * (east + 0.4 * north) ** 2)
    price = 0.4 * income + 1.5 * coast * income**0.5 + 0.02 * age * coast
    price += 0.3 * np.log(rooms / bedrooms) - 0.15 * household
    price = (price + rng.normal(0, 0.15, rows)).clip(0.1)
    table = (income, age, rooms, bedrooms, people, household, north, east, price)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*COLUMNS, TARGET])
        writer.writerows(np.round(np.stack(table, axis=1), 4).tolist())


class Normalizer:
    """A batcher: rows to tensors of mean 0 and deviation 1, as `rows` have it."""

    def __init__(self, rows: Any):
        columns = next(iter(data.batches(rows, len(rows))))
        inputs = np.stack([columns[name].numpy() for name in COLUMNS])
        self.mean, self.deviation = inputs.mean(1), inputs.std(1)

    def __call__(self, columns: dict[str, np.ndarray]) -> tuple[np.ndarray, ...]:
        inputs = np.stack([columns[name] for name in COLUMNS], axis=1)
        inputs = (inputs - self.mean) / self.deviation
        return inputs.astype(np.float32), columns[TARGET].astype(np.float32)


class Regression(nn.Module):
    """(batch, 8) -> (batch,)"""

    def __init__(self, hidden: int = 64):
        self.layers = nn.Sequential(
            nn.Linear(len(COLUMNS), hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x).squeeze(1)


class Explained(Metric):
    """The share of the targets' variance that the outputs explain: 1 is all of it."""

    def statistics(self, item: Any, moment: Moment) -> dict[str, Any]:
        targets = item.targets.numpy().astype(np.float64)
        errors = item.output.numpy() - targets
        sums = {"count": targets.size, "sum": targets.sum()}
        return sums | {"squares": targets @ targets, "errors": errors @ errors}

    def value(self, statistics: dict[str, Any]) -> float:
        mean = statistics["sum"] / statistics["count"]
        spread = statistics["squares"] - statistics["count"] * mean**2
        return float(1 - statistics["errors"] / spread)


def main(argv: list[str] | None = None) -> dict[str, float]:
    """Train, and give the test part's metrics."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--file", type=Path, default=Path("runs/houses.csv"))
    parser.add_argument("--rows", type=int, default=4000, help="of a file made up")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--run", type=Path, default=Path("runs/regression"))
    options = parser.parse_args(argv)

    seed(0)
    if not options.file.exists():
        make_up(options.file, options.rows)
    houses = data.read_csv(options.file)
    if missing := {*COLUMNS, TARGET} - houses.columns.keys():
        parser.error(f"{options.file}: expected columns {', '.join(sorted(missing))}")
    rest, test = data.train_test_split(houses, test=0.2)
    train, valid = data.train_test_split(rest, test=0.1)
    normalizer = Normalizer(train)
    batches = data.batches(train, 64, shuffle=0, batcher=normalizer)
    step = Supervised(nn.MSELoss())
    metrics = [Loss(), Explained()]
    model = Learner(
        Regression(),
        optim.AdamW(),
        optim.Cosine(5e-3, options.epochs * len(batches)),
        step=step,
        metrics=metrics,
        epochs=options.epochs,
        directory=options.run,
        overwrite=True,
    ).fit(batches, data.batches(valid, 512, batcher=normalizer))
    unseen = data.batches(test, 512, batcher=normalizer)
    found = Evaluator(model, step=step, metrics=metrics).eval(unseen)
    inputs, prices = next(iter(unseen))
    guesses = model(inputs[:5]).tolist()
    for guess, price in zip(guesses, prices[:5].tolist(), strict=True):
        print(f"guessed {guess:5.2f}, is {price:5.2f}")
    return found


if __name__ == "__main__":
    main()
