"""Gradient checkpointing: recompute cheap results in `backward()` to save memory.

Two ways. On a balanced device (`"cpu:autodiff:balanced"`) nodes do not hold what
memory-bound operators gave: elementwise ones, reshapes, normalizations. They compute it
again from what compute-bound ones (products, convolutions) left. And `checkpoint` keeps
nothing of a whole function but its arguments, and runs it again. Both give the
gradients that they would give without, to the last bit.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from burnish import rng
from burnish._engine.pytree import leaves, mapped
from burnish.autodiff import Node, Variable, no_grad, recording

_FARTHEST = 8
"""Results in a row that are not kept. A long chain of sums, such as a deep network's
residual path, would else be computed again from its very start."""


class Thin(Node):
    """A node that holds its result only where that is worth it.

    `held`: whether `values` stays; `distance`: how many operators in a row would have
    to be computed again to have it.
    """

    __slots__ = ("distance", "held")

    held: bool
    distance: int

    def __init__(
        self,
        operator: Any,
        args: tuple[Any, ...],
        options: dict[str, Any],
        parents: tuple[tuple[Node, int] | None, ...],
        values: Any,
    ):
        kept, distance = [], 1
        for arg, parent in zip(args, parents, strict=True):
            source = parent[0] if parent is not None else None
            if isinstance(source, Thin) and not source.held:
                distance = max(distance, source.distance + 1)
                arg = None
            kept.append(arg)
        self.held = (
            not operator.memory_bound
            or isinstance(values, tuple)
            or distance > _FARTHEST
        )
        self.distance = 0 if self.held else distance
        super().__init__(
            operator, tuple(kept), options, parents, values if self.held else None
        )

    def inputs(self) -> tuple[Any, ...]:
        return tuple(
            parent[0].outputs() if arg is None and parent is not None else arg
            for arg, parent in zip(self.args, self.parents, strict=True)
        )

    def outputs(self) -> Any:
        if self.values is None:
            self.values = self.operator.compute(self.inputs(), self.options)
        return self.values

    def forget(self) -> None:
        if not self.held:
            self.values = None


class Replay(Node):
    """The tape node of `checkpoint`: a call to run again, with its arguments."""

    __slots__ = ("call", "random")

    def __init__(self, call: Callable[[], Any], random: Any):
        super().__init__(Replay)  # a node without an operator is a leaf
        self.call, self.random = call, random

    def pull(
        self, incoming: dict[int, Any], like: Variable | None
    ) -> list[tuple[tuple[Node, int], Any]]:
        """Gradients for the second call's recording; `backward` continues from there.

        The second call works on the arguments themselves, so what it records leads on
        to where they came from, and to every parameter that it used.
        """
        with self._as_before():
            again = _variables(self.call())
        return [
            ((node, again[place].index), gradient)
            for place, gradient in incoming.items()
            if (node := again[place].node) is not None
        ]

    @contextlib.contextmanager
    def _as_before(self) -> Iterator[None]:
        """The same random numbers, and no second effect on modules."""
        now, state = rng.state(), (recording.paused, recording.replaying)
        rng.restore(self.random)
        recording.paused, recording.replaying = False, True
        try:
            yield
        finally:
            rng.restore(now)
            recording.paused, recording.replaying = state


def checkpoint(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """`function(*args, **options)`, computed again in `backward()` instead of recorded.

    function: a module or any function of tensors; it has to give the same when it is
    called again. Random numbers of `burnish.seed`'s source are drawn again, running
    statistics are not updated again. The result may be a tensor or tuples, lists and
    dicts of them.
    """
    if recording.paused:
        return function(*args, **options)
    random, missed = rng.state(), recording.missed
    recording.missed = False
    try:
        with no_grad():
            results = function(*args, **options)
        if not recording.missed:
            return results
        if recording.tape is not None:
            recording.tape.refuse(
                "checkpoint: what is recorded in a program is kept; "
                "capture the function and checkpoint the program"
            )
    finally:
        recording.missed = missed
    node = Replay(lambda: function(*args, **options), random)
    places = itertools.count()

    def recorded(result: Any) -> Any:
        if not isinstance(result, Variable):
            return result
        place = next(places)
        if result.node is not None or result.dtype.kind not in "fcV":
            return result
        return result.wrap(result.data, result.device, node, place)

    return mapped(results, recorded)


def _variables(results: Any) -> list[Variable]:
    """Every variable in a result, always in the same order."""
    return [each for each in leaves(results) if isinstance(each, Variable)]
