"""Learning-rate schedules: a rate for every step, and a record of where they are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np


@dataclass(eq=False)
class Schedule:
    """`step()` gives the rate for one more step; `at(n)` that of step n, from 0."""

    rate: float
    count: int = field(default=0, init=False)

    def at(self, step: int) -> float:
        """The rate of one step."""
        return self.rate

    def step(self) -> float:
        """The rate for the next step."""
        self.count += 1
        return self.at(self.count - 1)

    def state_dict(self) -> dict[str, Any]:
        """Where the schedule is."""
        return {"count": np.asarray(self.count)}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Go on where another one was."""
        self.count = int(state["count"])
        return self


@dataclass(eq=False)
class Constant(Schedule):
    """The same rate always."""


@dataclass(eq=False)
class Linear(Schedule):
    """From `rate` to `final` in a straight line over `steps` steps, then `final`."""

    final: float
    steps: int

    def at(self, step: int) -> float:
        part = min(step / self.steps, 1.0)
        return self.rate + (self.final - self.rate) * part


@dataclass(eq=False)
class Cosine(Schedule):
    """From `rate` to `final` along half a cosine over `steps` steps, then `final`."""

    steps: int
    final: float = 0.0

    def at(self, step: int) -> float:
        part = min(step / self.steps, 1.0)
        return (
            self.final + (self.rate - self.final) * (1 + math.cos(math.pi * part)) / 2
        )


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

    def at(self, step: int) -> float:
        return self.rate * self.gamma ** (step // self.every)


@dataclass(eq=False)
class Noam(Schedule):
    """The Transformer's: up for `warmup` steps, then down with the square root."""

    warmup: int = 4000
    model_size: int = 512

    def at(self, step: int) -> float:
        n = step + 1
        return self.rate * self.model_size**-0.5 * min(n**-0.5, n * self.warmup**-1.5)
