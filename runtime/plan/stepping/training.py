"""TrainingPlan: a step of training on a CPU as a plan.

Its forward pass, loss, gradients, running statistics and updates are a program, whose
calls become records of kernels; those without one are made in between, as they are
without a plan. What Python works out for each step, rates, is given anew to every run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from burnish import rng
from burnish._engine.pytree import leaves, mapped
from burnish.autodiff import Variable, no_grad
from burnish.capture import CaptureError, written
from burnish.capture.step import StepTape
from burnish.kernels import library, num_threads
from burnish.plan.arguments import numbers_in
from burnish.plan.plan import Plan
from burnish.planned.space import Fault
from burnish.tensor import Tensor


class TrainingPlan:
    """The plan of the calls of a training function, for arguments of one kind.

    why: why calls run eagerly; "" where they do not.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        by_value: bool,
        off: frozenset[str],
        half: bool,
    ):
        self._function, self._off, self._half = function, off, half
        self.by_value = by_value  # whether numbers of the call are part of it
        self.reads_numbers = by_value
        self.why = ""
        self._plan: Plan | None = None
        self._lock = threading.Lock()

    @property
    def summary(self) -> str:
        """Its parts, in words, and the operators that run eagerly."""
        if self._plan is None:
            return "planned with its next call"
        plain = [f"{node.label}: {why}" for node, why in self._plan.eager]
        counted = {text: plain.count(text) for text in plain}
        tail = "".join(f"\n  {count} x {text}" for text, count in counted.items())
        head = f"one plan, {self._plan.summary}"
        return f"{head}; eagerly:{tail}" if tail else f"{head}, nothing eagerly"

    def __call__(self, args: Any, options: Any) -> Any:
        """The function's results; its effects happen as in a plain call."""
        with self._lock:
            known = self._plan
            if self._is_planned(args, options):
                before = rng.state() if self._may_fault else None
                try:
                    return self._run(args, options)
                except Fault:  # nothing has been changed; the plain call draws anew
                    if before is not None:
                        rng.restore(before)
                finally:
                    if self._plan is not None and self._plan is not known:
                        # its first step gave parameters other memory
                        self._plan.library.release_memory()
        return self._function(*args, **options)

    def _is_planned(self, args: Any, options: Any) -> bool:
        if self._plan is not None:
            try:
                self._plan.program.check()
            except CaptureError:
                self._plan = None
        if self._plan is not None and not self._plan.updates.are_current:
            self._plan = None
        if self._plan is None and not self.why:
            try:
                self._make(args, options)
            except CaptureError as error:
                self.why = str(error)
            except Exception as error:  # the plain call says it, or can do it
                self.why = f"planning failed: {type(error).__name__}: {error}"
        return self._plan is not None

    def _make(self, args: Any, options: Any) -> None:
        tape = StepTape()
        program = written(tape, self._function, args, options)
        try:
            tape.check_kept()
            if not tape.has_gradients:
                raise CaptureError("plans are for inference, or steps with gradients")
            if any(rate.is_read for _, rate in tape.rates):
                raise CaptureError("a schedule's rate is computed with in Python")
        except CaptureError:
            tape.reads.restore()
            raise
        self.reads_numbers |= any(number.is_read for number in tape.numbers)
        kernels = library()
        if kernels is None:
            raise CaptureError("there are no kernels; burnish kernels info says why")
        self._numbers, self._rates = tape.numbers, tape.rates
        with no_grad():
            self._plan = Plan(program, kernels, num_threads(), self._off, self._half)
        self._may_fault = bool(self._plan.faults)

    def _run(self, args: Any, options: Any) -> Any:
        assert self._plan is not None
        items = leaves((args, options))
        given = [item for item in items if isinstance(item, Variable)]
        for each, number in zip(self._numbers, numbers_in(items), strict=True):
            each.value = number
        counts = [schedule.count for schedule, _ in self._rates]
        for schedule, rate in self._rates:
            rate.value = schedule.step()
        try:
            if not self._plan.updates.are_known:
                raise Fault
            with no_grad():
                made = self._plan(given)
        except Exception:  # whatever it is, the schedules go back
            for (schedule, _), count in zip(self._rates, counts, strict=True):
                schedule.count = count  # the step was none
            raise
        return mapped(made, _detached)


def _detached(item: Any) -> Any:
    """A tensor without the node that a plain call may have left."""
    if isinstance(item, Variable) and item.node is not None:
        return Tensor.wrap(item.data, item.device)
    return item
