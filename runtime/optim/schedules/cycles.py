"""Schedules that rise and fall: one cycle, many, or restarts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from burnish.errors import InputError
from burnish.optim.schedules.schedule import Schedule, at_least_one, cosine, linear


@dataclass(eq=False)
class CosineRestarts(Schedule):
    """Half a cosine from `rate` to `final` over `steps` steps, again and again.

    factor: how much longer each cosine is than the one before; a whole number.
    """

    steps: int
    factor: int = 1
    final: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_one("CosineRestarts steps", self.steps)
        at_least_one("CosineRestarts factor", self.factor)

    def at(self, step: int) -> float:
        if self.factor == 1:
            return cosine(self.rate, self.final, step % self.steps / self.steps)
        done, length = 0, self.steps
        while step - done >= length:
            done, length = done + length, length * self.factor
        return cosine(self.rate, self.final, (step - done) / length)


@dataclass(eq=False)
class OneCycle(Schedule):
    """From rate / div_factor up to `rate`, then down to a small part of the start.

    steps: of the whole cycle; pct_start: the share of them that goes up.
    final_div_factor: the last rate is the first one divided by it.
    anneal_strategy: "cos" or "linear"; three_phase: down to the first rate as fast as
    it went up, then on to the last.
    """

    steps: int
    pct_start: float = 0.3
    anneal_strategy: str = "cos"
    div_factor: float = 25.0
    final_div_factor: float = 1e4
    three_phase: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_one("OneCycle steps", self.steps)
        if not 0 <= self.pct_start <= 1:
            raise InputError(
                f"OneCycle pct_start: expected a share in [0, 1], got {self.pct_start}"
            )
        if self.anneal_strategy not in ("cos", "linear"):
            raise InputError(
                f"OneCycle anneal_strategy: expected 'cos' or 'linear', "
                f"got {self.anneal_strategy!r}"
            )

    def at(self, step: int) -> float:
        first = self.rate / self.div_factor
        last = first / self.final_div_factor
        top = self.pct_start * self.steps - 1
        ways = [(top, first, self.rate)]
        if self.three_phase:
            ways.append((2 * top, self.rate, first))
            ways.append((self.steps - 1, first, last))
        else:
            ways.append((self.steps - 1, self.rate, last))
        anneal = cosine if self.anneal_strategy == "cos" else linear
        begin = 0.0
        for end, low, high in ways:
            if step <= end and end > begin:
                return anneal(low, high, (step - begin) / (end - begin))
            begin = end
        return last


@dataclass(eq=False)
class Cyclic(Schedule):
    """Between `rate` and `high` in straight lines, up and down without an end.

    mode: "triangular"; "triangular2" halves the height with every cycle; "exp_range"
    multiplies it by gamma with every step. step_size_down None is step_size_up.
    """

    high: float
    step_size_up: int = 2000
    step_size_down: int | None = None
    mode: str = "triangular"
    gamma: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_one("Cyclic step_size_up", self.step_size_up)
        if self.step_size_down is not None:
            at_least_one("Cyclic step_size_down", self.step_size_down)
        if self.mode not in ("triangular", "triangular2", "exp_range"):
            raise InputError(
                f"Cyclic mode: expected 'triangular', 'triangular2' or 'exp_range', "
                f"got {self.mode!r}"
            )

    def at(self, step: int) -> float:
        up = self.step_size_up
        down = up if self.step_size_down is None else self.step_size_down
        cycle, place = divmod(step, up + down)
        height = place / up if place <= up else (up + down - place) / down
        if self.mode == "triangular2":
            height *= 0.5**cycle
        elif self.mode == "exp_range":
            height *= math.pow(self.gamma, step)
        return self.rate + (self.high - self.rate) * height
