"""Fast path for plans without eager calls: runs with little overhead in Python.

A small network takes some microseconds: each step of Python counts beside its kernels.
"""

from __future__ import annotations

from typing import Any

from burnish.capture.line import refs
from burnish.kernels.same import Together
from burnish.plan.plan import Plan


class Quick:
    """Runs of a plan for a call's tensors, while nothing that it depends on changes.

    is_same: whether modules and parameters are what they were.
    """

    def __init__(self, plan: Plan):
        self.plan, self._filled = plan, plan.program.filled
        self._ends, self._free, self._library = plan.ends, plan.free, plan.library
        self.is_same = Together(plan.looks or ())
        self._arrays = plan.constants  # those of `looks`, or newer ones
        (segment,) = plan.segments
        self._first, self._count = plan.range_of(segment)
        self._threads = segment.threads

    @classmethod
    def of(cls, plan: Plan) -> Quick | None:
        """None for a plan of eager steps or of effects, or of results without
        records."""
        if plan.eager or plan.by_value or len(plan.segments) != 1:
            return None
        if plan.program.has_effects:  # buffers that are assigned behind the records
            return None
        results = {ref.place for ref in refs(plan.program.results)}
        return cls(plan) if results <= plan.made and plan.looks is not None else None

    def __call__(self, given: Any) -> Any:
        """The result; raises Fault where records have none."""
        try:
            space = self._free.pop()
        except IndexError:
            space = self.plan.space()
        try:
            space.filled(self._arrays)
            alive: dict[int, Any] = {}
            self._ends.enter(space, alive, given)
            self._library.run(self._first, self._count, space.table, self._threads)
            made: dict[int, Any] = {}
            self._ends.leave(space, alive, made)
            return self._filled(made)
        finally:
            self._free.append(space)


class Checked:
    """Runs of a plan, the fast way while nothing that it depends on has changed."""

    def __init__(self, plan: Plan):
        self.plan, self._quick = plan, Quick.of(plan)

    def __call__(self, given: Any) -> Any:
        """The results; raises what `Plan.checked` does."""
        quick = self._quick
        if quick is not None and quick.is_same():
            return quick(given)
        made = self.plan.checked(given)
        self._quick = Quick.of(self.plan)
        return made
