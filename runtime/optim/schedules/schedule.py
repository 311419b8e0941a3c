"""Learning-rate schedules: a rate for every step, and a record of where they are."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from burnish.autodiff import recording
from burnish.backend import Array
from burnish.errors import InputError, RecordError
from burnish.optim.core.remembered import Remembered


@dataclass(eq=False)
class Schedule(Remembered):
    """`step()` gives the rate for one more step; `at(n)` that of step n, from 0.

    One rate a step: give a schedule as many steps as the optimizer takes.
    """

    rate: float
    count: int = field(default=0, init=False)

    def at(self, step: int) -> float:
        """The rate of one step."""
        return self.rate

    def step(self) -> float:
        """The rate for the next step."""
        if recording.tape is not None:
            return recording.tape.rate(self)
        self.count += 1
        return self.at(self.count - 1)

    def _named(self) -> dict[str, Array]:
        return {"count": np.asarray(self.count)}

    def _recall(self, state: Mapping[str, Array]) -> None:
        if list(state) != ["count"]:
            raise RecordError(
                f"schedule state: expected 'count' alone, got {sorted(state)}"
            )
        self.count = int(state["count"])


@dataclass(eq=False)
class Constant(Schedule):
    """The same rate always."""


@dataclass(eq=False)
class Linear(Schedule):
    """From `rate` to `final` in a straight line over `steps` steps, then `final`."""

    final: float
    steps: int

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_one(f"{type(self).__name__} steps", self.steps)

    def at(self, step: int) -> float:
        return linear(self.rate, self.final, min(step / self.steps, 1.0))


@dataclass(eq=False)
class Cosine(Schedule):
    """From `rate` to `final` along half a cosine over `steps` steps, then `final`."""

    steps: int
    final: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_one("Cosine steps", self.steps)

    def at(self, step: int) -> float:
        return cosine(self.rate, self.final, min(step / self.steps, 1.0))


@dataclass(eq=False)
class Polynomial(Linear):
    """From `rate` to `final` over `steps` steps, the rest to the power `power`."""

    power: float = 1.0

    def at(self, step: int) -> float:
        rest = max(1 - step / self.steps, 0.0)
        return self.final + (self.rate - self.final) * rest**self.power


@dataclass(eq=False)
class Exponential(Schedule):
    """`rate` times `gamma` to the number of steps."""

    gamma: float

    def at(self, step: int) -> float:
        return self.rate * self.gamma**step


@dataclass(eq=False)
class Steps(Schedule):
    """`rate` times `gamma` after every `every` steps."""

    every: int
    gamma: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_one("Steps every", self.every)

    def at(self, step: int) -> float:
        return self.rate * self.gamma ** (step // self.every)


@dataclass(eq=False)
class MultiStep(Schedule):
    """`rate` times `gamma` at every one of `milestones`."""

    milestones: Sequence[int]
    gamma: float = 0.1

    def at(self, step: int) -> float:
        passed = bisect.bisect_right(sorted(self.milestones), step)
        return self.rate * self.gamma**passed


@dataclass(eq=False)
class Noam(Schedule):
    """The Transformer's: up for `warmup` steps, then down with the square root."""

    warmup: int = 4000
    model_size: int = 512

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_one("Noam warmup", self.warmup)

    def at(self, step: int) -> float:
        n = step + 1
        return self.rate * self.model_size**-0.5 * min(n**-0.5, n * self.warmup**-1.5)


@dataclass(eq=False)
class Factor(Schedule):
    """`rate` times what `factor(step)` gives."""

    factor: Callable[[int], float]

    def at(self, step: int) -> float:
        return self.rate * self.factor(step)


def linear(start: float, end: float, part: float) -> float:
    """From start to end, `part` of the way."""
    return start + (end - start) * part


def cosine(start: float, end: float, part: float) -> float:
    """From start to end along half a cosine, `part` of the way."""
    return end + (start - end) * (1 + math.cos(math.pi * part)) / 2


def at_least_one(name: str, value: int) -> None:
    """Raise InputError unless value >= 1."""
    if value < 1:
        raise InputError(f"{name}: expected 1 or more, got {value}")
