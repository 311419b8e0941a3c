"""What a table of records runs on: an arena, the addresses of arrays, and results."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from burnish.backend import Device
from burnish.kernels.direct import address
from burnish.tensor import Tensor

ARENA = 0
"""The arena's number among the arrays of a call."""

_ALIGNED = 64
_CPU = Device("cpu")


class Fault(Exception):
    """A call that its plan cannot compute: the function as it is has to."""


class Fetch(NamedTuple):
    """Where a value that leaves the records is: in which array, from which byte."""

    place: int
    slot: int
    offset: int
    shape: tuple[int, ...]
    dtype: Any

    def of(self, alive: dict[int, Any]) -> Tensor:
        array = np.ndarray(self.shape, self.dtype, alive[self.slot], self.offset)
        return Tensor.wrap(array, _CPU)


class Space:
    """An arena and a table of arrays: one for each run that goes on at a time."""

    def __init__(self, arena: int, slots: int):
        self._arena = np.empty(arena + _ALIGNED, np.uint8)
        self.pointers = np.zeros(slots, np.int64)
        start = address(self._arena)
        self.pointers[ARENA] = -(-start // _ALIGNED) * _ALIGNED
        self.table = address(self.pointers)
        self._of: Any = None

    def filled(self, arrays: dict[int, Any]) -> Any:
        """The table, with the constants that there are now."""
        if self._of is not arrays:
            for slot, array in arrays.items():
                self.pointers[slot] = address(array)
            self._of = arrays
        return self.pointers


def point(pointers: Any, alive: dict[int, Any], slot: int, array: Any) -> None:
    """Let a slot name an array, which lives as long as the run does."""
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    alive[slot] = array
    pointers[slot] = address(array)
