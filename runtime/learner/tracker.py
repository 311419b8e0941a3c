"""The metrics of one epoch of one split, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from burnish.errors import InputError
from burnish.learner.events import Entry
from burnish.learner.metric.base import Metric, Moment, Statistics

Measured: TypeAlias = dict[str, Statistics]
"""The statistics of a batch, by the metric's name."""


class Tracker:
    """Adds statistics up; one for every split and epoch."""

    def __init__(self, metrics: Sequence[Metric], split: str):
        self.metrics = [metric for metric in metrics if split in metric.splits]
        names = [metric.name for metric in self.metrics]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise InputError(
                f"metrics: expected different names, got {twice[0]!r} twice"
            )
        self._sums: Measured = {name: {} for name in names}

    def measure(self, item: Any, moment: Moment) -> Measured:
        """The statistics of one batch."""
        return {m.name: m.statistics(item, moment) for m in self.metrics}

    def add(self, parts: Iterable[Measured]) -> list[Entry]:
        """Take one batch in, measured in parts; what is known of it and of the epoch.

        Parts that hold nothing are passed over.
        """
        parts = [part for part in parts if part]
        entries = []
        for metric in self.metrics if parts else ():
            batch: Statistics = {}
            for part in parts:
                batch = metric.merge(batch, part[metric.name])
            self._sums[metric.name] = metric.merge(self._sums[metric.name], batch)
            value = running = metric.value(batch)
            if not metric.collected:  # a value of all rows waits for the last of them
                running = metric.value(self._sums[metric.name])
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
        """The sums so far, to resume from later: "Loss.sum" -> array."""
        return {
            f"{name}.{key}": np.asarray(value)
            for name, statistics in self._sums.items()
            for key, value in statistics.items()
        }

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Continue from `state_dict()` of the same metrics."""
        for metric in self.metrics:
            prefix = f"{metric.name}."
            self._sums[metric.name] = {
                name.removeprefix(prefix): value if value.ndim else value.item()
                for name, value in state.items()
                if name.startswith(prefix)
            }
