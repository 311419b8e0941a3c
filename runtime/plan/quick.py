"""Fast path for plans without eager calls: runs with little overhead in Python.

A small network takes some microseconds: each step of Python counts beside its kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burnish.capture.line import refs
from burnish.kernels.same import guarded
from burnish.plan.plan import Plan


class Checked:
    """Runs of a plan, the fast way while nothing that it depends on has changed."""

    def __init__(self, plan: Plan):
        self.plan, self._filled = plan, plan.program.filled
        self._ends, self._free = plan.ends, plan.free
        self._bind()

    def _bind(self) -> None:
        """Take modules and parameters as they are now."""
        run = _guarded(self.plan)
        self._bound = self.plan.constants, run  # those that `run` looks at, or newer

    def __call__(self, given: Any) -> Any:
        """The results; raises what `Plan.checked` does."""
        constants, run = self._bound
        if run is not None:
            try:
                space = self._free.pop()
            except IndexError:
                space = self.plan.space()
            try:
                space.filled(constants)
                alive: dict[int, Any] = {}
                self._ends.enter(space, alive, given)
                if run(space.table):
                    made: dict[int, Any] = {}
                    self._ends.leave(space, alive, made)
                    return self._filled(made)
            finally:
                self._free.append(space)
        results = self.plan.checked(given)
        self._bind()
        return results


def _guarded(plan: Plan) -> Callable[[int], int] | None:
    """What runs the plan's records while modules and parameters are what they are.

    None for a plan of eager steps or of effects, or of results without records.
    """
    looks = plan.looks
    if plan.eager or plan.by_value or len(plan.segments) != 1 or looks is None:
        return None
    if plan.program.has_effects:  # buffers that are assigned behind the records
        return None
    if not {ref.place for ref in refs(plan.program.results)} <= plan.made:
        return None
    (segment,) = plan.segments
    return guarded(looks, plan.library, *plan.range_of(segment), segment.threads)
