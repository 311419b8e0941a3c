"""Limits on the memory and work that reading a file may take, shared by all readers.

A few bytes can stand for any number of values, so whoever makes something out of a file
counts it first: `budget.take(bytes)`, `budget.step(steps)`. All that reads one model
shares one budget, made with the bytes of all its files.
"""

from __future__ import annotations

from burnish.errors import BudgetError

# Reading takes at most ten times the file and 64 MiB. What is counted is kept below
# that, as allocators round up and not everything is counted.
_TIMES, _FLOOR = 8, 48 << 20
# A step is about a microsecond of Python: one a byte is a second a megabyte.
_STEPS, _FEWEST_STEPS = 1, 1 << 21


class Budget:
    """Bytes of memory allocated for files of `size` bytes in all; too many are refused.

    where: what messages start with, as a rule the file's path. limit: the bytes that
    may be made, for a file that is trusted; its steps have no limit. advice: how the
    user says so ("pass limit=BYTES").
    """

    __slots__ = ("advice", "left", "limit", "size", "steps", "where")

    def __init__(
        self, size: int, where: str, limit: int | None = None, advice: str = ""
    ):
        self.size = size
        self.where = where
        self.limit = _FLOOR + _TIMES * size if limit is None else limit
        self.left = self.limit
        self.steps = None if limit is not None else _FEWEST_STEPS + _STEPS * size
        self.advice = advice

    def take(self, amount: int) -> None:
        """Count bytes of memory or output. Raises BudgetError at too many."""
        self.left -= amount
        if self.left < 0:
            raise self._refusal(f"at most {self.limit} bytes of memory")

    def step(self, count: int = 1) -> None:
        """Count steps of about a microsecond each. Raises BudgetError at too many.

        For work that can grow faster than the file: what is walked again, expanded, or
        compared with everything else.
        """
        if self.steps is None:
            return
        self.steps -= count
        if self.steps < 0:
            seconds = 1 + _STEPS * self.size // 1_000_000
            raise self._refusal(f"about {seconds} s of work at most")

    def fits(self, amount: int) -> bool:
        """Whether so many more bytes may be taken, for what can also be left out."""
        return amount <= self.left

    def _refusal(self, expected: str) -> BudgetError:
        advice = f"; if you trust it, {self.advice}" if self.advice else ""
        return BudgetError(
            f"{self.where}: expected to need {expected} for {self.size} bytes of file, "
            f"it asks for more{advice}"
        )
