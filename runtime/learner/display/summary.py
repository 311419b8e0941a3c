"""The table at the end of a run: each metric's lowest and highest value."""

from __future__ import annotations

import os
from dataclasses import dataclass

from burnish.learner.events import SPLITS, EventStore, read_events

_HEADER = ("Split", "Metric", "Min.", "Epoch", "Max.", "Epoch")


@dataclass(frozen=True, slots=True)
class Range:
    """One metric of one split over all epochs."""

    split: str
    metric: str
    unit: str
    low: float
    low_epoch: int
    high: float
    high_epoch: int


@dataclass(frozen=True)
class LearnerSummary:
    """Each metric's range; `str` gives the table."""

    ranges: tuple[Range, ...]

    @classmethod
    def of(cls, store: EventStore) -> LearnerSummary:
        """The summary of values in memory."""
        ranges = []
        for split in SPLITS:
            for name in store.metrics(split):
                low = store.find_epoch(name, split, highest=False)
                high = store.find_epoch(name, split, highest=True)
                if low is None or high is None:
                    continue
                values, unit = store.epochs(name, split), store.units.get(name, "")
                ranges.append(
                    Range(split, name, unit, values[low], low, values[high], high)
                )
        return cls(tuple(ranges))

    @classmethod
    def read(cls, directory: str | os.PathLike[str]) -> LearnerSummary:
        """The summary of a run's directory, finished or not."""
        return cls.of(read_events(directory))

    def __str__(self) -> str:
        if not self.ranges:
            return ""
        rows: list[tuple[str, ...]] = [_HEADER]
        for r in self.ranges:
            name = f"{r.metric} ({r.unit})" if r.unit else r.metric
            low, high = f"{r.low:.4g}", f"{r.high:.4g}"
            rows.append((r.split, name, low, f"{r.low_epoch}", high, f"{r.high_epoch}"))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        rows.insert(1, tuple("-" * width for width in widths))
        aligned = [
            "  ".join(
                cell.ljust(width) if i < 2 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]
        return "\n".join(line.rstrip() for line in aligned)
