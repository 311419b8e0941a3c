"""Schedules made of schedules: at the same time, one after another, by group."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from burnish._engine.arguments import checked
from burnish.errors import InputError
from burnish.nn import ParamGroup
from burnish.optim.core.rates import Rates
from burnish.optim.schedules.schedule import Schedule, linear

_REDUCTIONS: dict[str, Callable[[list[float]], float]] = {
    "prod": math.prod,
    "sum": math.fsum,
    "avg": lambda rates: math.fsum(rates) / len(rates),
}


@dataclass(eq=False, init=False)
class Composed(Schedule):
    """Several schedules at once: `Composed(a, b, reduction="prod")`

    reduction: what becomes of their rates: "prod", "sum" or "avg".
    """

    schedules: tuple[Schedule, ...]
    reduction: str

    def __init__(self, *schedules: Schedule, reduction: str = "prod"):
        if not schedules or reduction not in _REDUCTIONS:
            raise InputError(
                f"Composed: expected schedules and a reduction out of "
                f"{', '.join(_REDUCTIONS)}, got {len(schedules)} and {reduction!r}"
            )
        self.schedules, self.reduction, self.count = schedules, reduction, 0
        self.rate = self.at(0)

    def at(self, step: int) -> float:
        return _REDUCTIONS[self.reduction]([s.at(step) for s in self.schedules])


@dataclass(eq=False, init=False)
class Sequential(Schedule):
    """One schedule after another; number i + 1 starts anew at step milestones[i]."""

    schedules: Sequence[Schedule]
    milestones: Sequence[int]

    @checked
    def __init__(self, schedules: Sequence[Schedule], milestones: Sequence[int]):
        rising = all(a < b for a, b in itertools.pairwise(milestones))
        if len(milestones) != len(schedules) - 1 or not rising:
            raise InputError(
                f"Sequential: expected rising milestones, one fewer than schedules, "
                f"got {list(milestones)} for {len(schedules)}"
            )
        self.schedules, self.milestones, self.count = schedules, milestones, 0
        self.rate = self.at(0)

    def at(self, step: int) -> float:
        place = bisect.bisect_right(self.milestones, step)
        start = self.milestones[place - 1] if place else 0
        return self.schedules[place].at(step - start)


@dataclass(eq=False, init=False)
class Warmup(Schedule):
    """Up from `start` in a straight line for `steps` steps, then `schedule`.

    The first step after the warm-up has the schedule's first rate.
    """

    schedule: Schedule
    steps: int
    start: float

    @checked
    def __init__(self, schedule: Schedule, steps: int, start: float = 0.0):
        self.schedule, self.steps, self.start = schedule, steps, start
        self.rate, self.count = self.at(0), 0

    def at(self, step: int) -> float:
        if step >= self.steps:
            return self.schedule.at(step - self.steps)
        return linear(self.start, self.schedule.at(0), step / self.steps)


class ModuleSchedule(Schedule):
    """`default` for a module's parameters, but other schedules for groups.

        schedule = ModuleSchedule(Cosine(1e-3, 100)).with_group(head, Constant(1e-2))
        optimizer.step(schedule.step(), model, gradients)

    Where groups overlap the last one counts.
    """

    @checked
    def __init__(self, default: Schedule):
        super().__init__(default.rate)
        self.default = default
        self.groups: list[tuple[ParamGroup, Schedule]] = []

    def with_group(self, group: ParamGroup, schedule: Schedule) -> Self:
        """Let `schedule` give the rates of `group`; returns this one."""
        self.groups.append((group, schedule))
        return self

    def at(self, step: int) -> Rates:
        groups = [(group, schedule.at(step)) for group, schedule in self.groups]
        return Rates(self.default.at(step), groups)
