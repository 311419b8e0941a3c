"""Base classes of metrics: statistics of batches, and the value computed from them.

class MeanError(Metric):
    unit, higher_is_better = "m", False

    def statistics(self, item, moment):
        error = (item.output - item.targets).abs()
        return {"sum": error.sum().item(), "count": error.size}

    def value(self, statistics):
        return statistics["sum"] / statistics["count"]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from burnish.autodiff import Variable
from burnish.backend import on_host
from burnish.errors import InputError

Statistics: TypeAlias = dict[str, Any]
"""Numbers and arrays of one batch or of many, by name."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Where in a run a batch is; iteration counts the epoch's batches from 1."""

    split: str
    epoch: int
    iteration: int
    learning_rate: float | None = None
    seconds: float = 0.0
    batch_size: int = 1


class Metric:
    """A value of a run of batches, from statistics that add up over them.

    A metric has no state: the value of a batch, of an epoch and of several processes
    come from the same two methods.
    """

    unit: ClassVar[str] = ""
    higher_is_better: ClassVar[bool | None] = True
    """None where neither is better, as of a learning rate."""
    collected: ClassVar[bool] = False
    """Whether statistics are rows to be kept, and not numbers to be added."""
    splits: ClassVar[tuple[str, ...]] = ("train", "valid", "test")

    @property
    def name(self) -> str:
        """Its name in tables and files; different for different settings."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", type(self).__name__)

    def statistics(self, item: Any, moment: Moment) -> Statistics:
        """The statistics of one batch; item: the step's result."""
        raise TypeError(f"{type(self).__name__} does not say its statistics")

    def value(self, statistics: Statistics) -> float:
        """The value of accumulated statistics."""
        raise TypeError(f"{type(self).__name__} does not say its value")

    def merge(self, before: Statistics, batch: Statistics) -> Statistics:
        """The statistics of both together; the first ones may be empty."""
        if not before:
            return dict(batch)
        if self.collected:
            return {k: np.concatenate([before[k], batch[k]]) for k in before}
        return {k: before[k] + batch[k] for k in before}

    def shown(self, value: float) -> str:
        """The value as a person reads it."""
        return f"{value:.4g} {self.unit}".rstrip()


class Mean(Metric):
    """The mean of a number per batch, weighted by the sizes of the batches."""

    def number(self, item: Any, moment: Moment) -> float:
        """The number of one batch."""
        raise TypeError(f"{type(self).__name__} does not say its number")

    def statistics(self, item: Any, moment: Moment) -> Statistics:
        size = moment.batch_size
        return {"sum": self.number(item, moment) * size, "count": size}

    def value(self, statistics: Statistics) -> float:
        return ratio(statistics["sum"], statistics["count"])


def output_and_targets(item: Any) -> tuple[Any, Any]:
    """The model's outputs and the targets of a step's item."""
    return item.output, item.targets


@dataclass(frozen=True, kw_only=True)
class Compared(Metric):
    """A metric of outputs against targets.

    adapt: what takes the two out of an item that has them under other names.
    """

    adapt: Callable[[Any], tuple[Any, Any]] = output_and_targets

    def compare(self, output: Any, targets: Any) -> Statistics:
        """The statistics of two arrays on the host."""
        raise TypeError(f"{type(self).__name__} does not say how it compares")

    def statistics(self, item: Any, moment: Moment) -> Statistics:
        output, targets = self.adapt(item)
        return self.compare(array(output), array(targets))

    def expect(self, fits: bool, what: str, output: Any, targets: Any) -> None:
        """Raise InputError with both shapes unless they fit."""
        if not fits:
            raise InputError(
                f"{self.name}: expected {what}, got output {np.shape(output)} "
                f"and targets {np.shape(targets)}"
            )


def array(values: Any) -> Any:
    """A tensor's values as a NumPy array on the host."""
    return on_host(values.data if isinstance(values, Variable) else values)


def ratio(part: Any, whole: Any) -> float:
    """part / whole, and not-a-number where there is nothing."""
    return float(part) / float(whole) if whole else float("nan")


def percent(statistics: Mapping[str, Any], part: str, whole: str) -> float:
    """100 * part / whole."""
    return 100 * ratio(statistics[part], statistics[whole])
