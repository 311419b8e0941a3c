"""Plans of one operator, by which large eager convolutions run."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from burnish.kernels import direct
from burnish.kernels.library import Library
from burnish.kernels.threads import num_threads
from burnish.plan.cpu import LOWERED, Builder, Declined, placed
from burnish.plan.cpu.layout import PLAIN
from burnish.plan.graph import Node, Value
from burnish.planned.space import ALIGNED, ARENA

_FLOAT32 = np.dtype(np.float32)
_KEPT = 1 << 8
"""Plans of the most recent operators and shapes that are kept."""


class Single:
    """The records of one operator for float32 arrays of these shapes; None is absent.

    kernels: the names of its records. Raises Declined where there are none for it.
    """

    def __init__(
        self,
        library: Library,
        threads: int,
        name: str,
        shapes: tuple[tuple[int, ...] | None, ...],
        options: dict[str, Any],
        result: tuple[int, ...],
    ):
        self._library, self._threads, self._shape = library, threads, result
        given = [s and Value(i, s, _FLOAT32) for i, s in enumerate(shapes)]
        made = Value(len(shapes), result, _FLOAT32)
        # NaN stays where it is, and callers look whether there is any
        off = frozenset({"winograd", "winograd_gradients", "calibrate"})
        b = Builder(library, threads, {}, {made.place}, off, may_fault=False)
        sources = [b.source(value).buffer for value in given if value]
        LOWERED[name](b, Node(name, given, options, [made], []))
        out = b.spot(made, PLAIN).root.buffer
        out.outside = True
        memory = placed(b)
        self.kernels = [step.kind for step in b.steps]
        self._records = memory.records
        self._arena = memory.arena + ALIGNED
        self._constants = {slot: c.make() for slot, c in memory.constants.items()}
        self._pointers = np.zeros(memory.slots, np.int64)
        for slot, array in self._constants.items():
            self._pointers[slot] = direct.address(array)
        self._slots = [buffer.slot for buffer in (*sources, out)]

    def __call__(self, *arrays: Any) -> Any:
        """The result for dense arrays of the shapes."""
        made, arena = np.empty(self._shape, np.float32), np.empty(self._arena, np.uint8)
        pointers = self._pointers.copy()
        start = direct.address(arena)
        pointers[ARENA] = start + -start % ALIGNED
        find = direct.address
        pointers[self._slots] = [
            *(find(a) for a in arrays if a is not None),
            find(made),
        ]
        run = self._library.run
        run(find(self._records), len(self.kernels), find(pointers), self._threads)
        return made


@functools.lru_cache(_KEPT)
def _single(
    library: Library,
    threads: int,
    name: str,
    shapes: tuple[tuple[int, ...] | None, ...],
    options: tuple[tuple[str, Any], ...],
    result: tuple[int, ...],
) -> Single | None:
    try:
        return Single(library, threads, name, shapes, dict(options), result)
    except Declined:
        return None


def single(
    name: str,
    arrays: tuple[Any, ...],
    options: dict[str, Any],
    result: tuple[int, ...],
) -> Any:
    """The operator's result for dense float32 arrays; None where kernels decline.

    arrays: None for one that is absent. options: hashable. result: its shape.
    """
    library = direct.usable()
    assert library is not None
    shapes = tuple([None if a is None else a.shape for a in arrays])
    plan = _single(library, num_threads(), name, shapes, tuple(options.items()), result)
    return plan and plan(*arrays)
