"""Statements in C of element-wise optimizers, traced from their formulas for a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from burnish.backend.cuda.elementwise.optimizer import Statements
from burnish.backend.symbols import Unwritten
from burnish.optim.rules.scalars import Scalar, Scalars
from burnish.optim.rules.traces import Recording, recorded


class Trace(NamedTuple):
    """The statements of a formula, for every step that it branches alike for.

    places: of the constants that depend on the step, among the scalars.
    """

    scalars: Scalars
    places: dict[int, int]
    statements: Statements

    def at(self, step: int, rate: float) -> Statements | None:
        """The statements with the numbers of a step; None where they are others."""
        values = self.scalars.at(step, rate)
        if values is None:
            return None
        lines, constants = self.statements
        try:
            found = {i: float(values[place]) for i, place in self.places.items()}
        except (OverflowError, TypeError):  # too large, or complex
            return None
        numbers = list(constants)
        for i, number in found.items():
            numbers[i] = number
        return Statements(lines, tuple(numbers))


def traced(
    write: Callable[..., None],
    slots: Sequence[str],
    step: int,
    rate: float,
    *,
    dtype: Any,
) -> Trace | None:
    """The statements of the rule `write` in a dtype; None where no kernel has them."""
    return recorded(partial(_traced, write, slots, dtype), step, rate)


def _traced(
    write: Callable[..., None],
    slots: Sequence[str],
    dtype: Any,
    scalars: Scalars,
    step: Any,
    rate: Any,
) -> Trace | None:
    script = _Statements(dtype)
    new, weight, grad = (script.variable(name) for name in ("y", "x0", "x1"))
    state: dict[str, Any] = {s: script.variable(f"s{i}") for i, s in enumerate(slots)}
    try:
        write(new, weight, grad, state | {"step": step}, rate)
    except Unwritten:
        return None
    except Exception:
        if isinstance(step, Scalar):  # numbers may do, or it is the rule's error
            return None
        raise
    statements = Statements(tuple(script.lines), tuple(script.constants))
    return Trace(scalars, script.scalars, statements)


class _Statements(Recording):
    def scalar(self, value: Any) -> Any:
        if type(value.value) in (bool, np.bool_):
            return bool(value)  # a word of C, not a constant
        return super().scalar(value)
