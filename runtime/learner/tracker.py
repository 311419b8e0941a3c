"""The metrics of one epoch of one split, batch by batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from burnish.errors import InputError
from burnish.learner.events import Entry
from burnish.learner.metric.base import Metric, Moment, Statistics


class Tracker:
    """Adds statistics up; one for every split and epoch."""

    def __init__(self, metrics: Sequence[Metric], split: str):
        self.metrics = [metric for metric in metrics if split in metric.splits]
        names = [metric.name for metric in self.metrics]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise InputError(
                f"metrics: expected different names, got {twice[0]!r} twice"
            )
        self._sums: dict[str, Statistics] = {name: {} for name in names}

    def update(self, item: Any, moment: Moment) -> list[Entry]:
        """Take one batch in; what each metric says of it and of the epoch so far."""
        entries = []
        for metric in self.metrics:
            batch = metric.statistics(item, moment)
            self._sums[metric.name] = metric.merge(self._sums[metric.name], batch)
            value = metric.value(batch)
            # a value of rows is not worked out anew at every batch
            running = (
                value if metric.collected else metric.value(self._sums[metric.name])
            )
            entries.append(Entry(metric.name, value, running, metric.shown(running)))
        return entries

    def values(self) -> dict[str, float]:
        """Each metric of all batches so far."""
        return {
            metric.name: metric.value(self._sums[metric.name])
            for metric in self.metrics
            if self._sums[metric.name]
        }

    def state_dict(self) -> dict[str, np.ndarray]:
        """What was added up, to go on from later: "Loss.sum" -> array."""
        return {
            f"{name}.{key}": np.asarray(value)
            for name, statistics in self._sums.items()
            for key, value in statistics.items()
        }

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from `state_dict()` of the same metrics."""
        for name, value in state.items():
            metric, _, key = name.rpartition(".")
            if metric in self._sums:
                held = value if value.ndim else value.item()
                self._sums[metric][key] = held
