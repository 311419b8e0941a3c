"""Metrics of the run itself: loss, learning rate, speed."""

from __future__ import annotations

from typing import Any

from burnish.learner.metric.base import Mean, Metric, Moment, Statistics, array, ratio


class Loss(Mean):
    """The loss that the step gave; of an epoch the mean over its items."""

    higher_is_better = False

    def number(self, item: Any, moment: Moment) -> float:
        return float(array(item.loss).mean(dtype="float64"))


class LearningRate(Metric):
    """The rate of the latest optimizer step."""

    higher_is_better = None
    splits = ("train",)

    def statistics(self, item: Any, moment: Moment) -> Statistics:
        return {"rate": moment.learning_rate}

    def merge(self, before: Statistics, batch: Statistics) -> Statistics:
        return dict(batch)

    def value(self, statistics: Statistics) -> float:
        return float(statistics["rate"])


class IterationSpeed(Metric):
    """Batches a second."""

    unit = "batch/s"

    def statistics(self, item: Any, moment: Moment) -> Statistics:
        return {"count": 1, "seconds": moment.seconds}

    def value(self, statistics: Statistics) -> float:
        return ratio(statistics["count"], statistics["seconds"])
