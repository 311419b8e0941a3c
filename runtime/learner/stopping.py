"""Early stopping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from burnish.learner.events import EventStore


class EarlyStopping(Protocol):
    """Asked after every epoch; a reason ends the run."""

    def __call__(self, store: EventStore, epoch: int) -> str | None: ...


@dataclass(frozen=True)
class NoImprovement:
    """Stop when a metric has been no better for `epochs` epochs.

    highest: which way is better; None asks the metric. warmup: epochs at the start
    that may not stop the run. least: a smaller gain is none.
    """

    metric: str = "Loss"
    epochs: int = 3
    split: str = "valid"
    highest: bool | None = None
    warmup: int = 0
    least: float = 0.0

    def __call__(self, store: EventStore, epoch: int) -> str | None:
        sign = 1 if store.direction(self.metric, self.highest) else -1
        best, since = float("-inf"), 0
        for number, value in sorted(store.epochs(self.metric, self.split).items()):
            if sign * value > best + (self.least if since else 0.0):
                best, since = sign * value, number
        if epoch <= self.warmup or epoch - since < self.epochs:
            return None
        return (
            f"{self.split} {self.metric} no better than {sign * best:.4g} "
            f"for {epoch - since} epochs"
        )
