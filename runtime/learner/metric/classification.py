"""Metrics of classifiers: outputs (batch, classes, ...) against whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from burnish.errors import InputError
from burnish.learner.metric.base import Metric, Moment, Statistics, array, percent


@dataclass(frozen=True)
class Accuracy(Metric):
    """The share of rows whose largest output is the target's, in percent.

    Outputs (..., classes), targets (...). pad: a target that is not counted.
    """

    pad: int | None = None

    unit = "%"

    def statistics(self, item: Any, moment: Moment) -> Statistics:
        output, targets = array(item.output), array(item.targets)
        if output.shape[:-1] != targets.shape:
            raise InputError(
                f"Accuracy: expected output (..., classes) for targets "
                f"{targets.shape}, got {output.shape}"
            )
        right = output.argmax(-1) == targets
        counted = right.size
        if self.pad is not None:
            right, counted = right[targets != self.pad], (targets != self.pad).sum()
        return {"right": int(right.sum()), "count": int(counted)}

    def value(self, statistics: Statistics) -> float:
        return percent(statistics, "right", "count")
