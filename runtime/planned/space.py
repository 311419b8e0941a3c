"""The memory that records run on: an arena, arrays' addresses, and results."""

from __future__ import annotations

import math
import weakref
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import numpy as np

from burnish.autodiff import wrapped
from burnish.backend import Device
from burnish.kernels.direct import address
from burnish.tensor import Tensor

ARENA = 0
"""The arena's number among the arrays of a call."""

ALIGNED = 64
"""Bytes of a cache line, and of the widest vector: where arrays begin."""

_SMALL = 1 << 14
"""Bytes of an argument or a result that are copied: to find its address is slower."""

_PAGE = 2 << 20
"""Bytes of a large page of memory: address translations are found faster with them."""

_ASKED = 4 << 20
"""Bytes of an array for which NumPy asks the system for large pages."""

_REUSED = 1 << 20
"""Bytes of a result whose memory a space keeps for the next run: to get as much from
the system takes as long as to compute it."""

_CPU = Device("cpu")


class Fault(Exception):
    """A call that its plan cannot compute: the function has to, eagerly."""


class Fetch(NamedTuple):
    """Where a value that leaves the records is: in which array, from which byte."""

    place: int
    slot: int
    offset: int
    shape: tuple[int, ...]
    dtype: Any

    @property
    def size(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def array(self, arrays: dict[int, Any]) -> Any:
        return np.ndarray(self.shape, self.dtype, arrays[self.slot], self.offset)

    def of(self, alive: dict[int, Any]) -> Tensor:
        return Tensor.wrap(self.array(alive), _CPU)


class Space:
    """An arena and a table of arrays: one for each concurrent run.

    taken, given: its own arrays for arguments and results, by their place. noted: those
    where records note a fault. `Ends` makes them.
    """

    def __init__(self, arena: int, slots: int):
        is_large = arena >= _PAGE // 2
        start_at = _PAGE if is_large else ALIGNED
        size = max(arena, _ASKED) if is_large else arena
        self._arena = np.empty(size + start_at, np.uint8)
        self.pointers = np.zeros(slots, np.int64)
        start = address(self._arena)
        self.pointers[ARENA] = -(-start // start_at) * start_at
        self.table = address(self.pointers)
        self._of: Any = None
        self.taken: list[tuple[int, Any]] = []
        self.given: list[tuple[int, Any]] = []
        self.noted: list[Any] = []
        self._kept: dict[int, tuple[Any, weakref.ref[Any]]] = {}

    def result(self, slot: int, size: int) -> Any:
        """Memory for a result: what an earlier run's had, where nothing holds that."""
        if size < _REUSED:
            return np.empty(size, np.uint8)
        kept, held = self._kept.get(slot, (None, None))
        if kept is None or (held is not None and held() is not None):
            kept = np.empty(size, np.uint8)
        memory: Any = kept
        # NumPy's views refer to the last array whose own base is none: to this one
        lent = np.frombuffer(memoryview(memory), np.uint8)
        self._kept[slot] = kept, weakref.ref(lent)
        return lent

    def check(self) -> None:
        """Raise Fault where a record has noted one."""
        for noted in self.noted:
            if noted[0]:
                noted[0] = 0
                raise Fault

    def filled(self, arrays: dict[int, Any]) -> Any:
        """The table, with the constants that there are now."""
        if self._of is not arrays:
            for slot, array in arrays.items():
                self.pointers[slot] = address(array)
            self._of = arrays
        return self.pointers


def point(pointers: Any, alive: dict[int, Any], slot: int, array: Any) -> None:
    """Let a slot name an array, which lives as long as the run does."""
    array = np.asarray(array, order="C")  # a NumPy scalar has no memory that stays
    alive[slot] = array
    pointers[slot] = address(array)


def aligned(array: Any) -> Any:
    """The array, dense and at the beginning of a cache line."""
    array = np.ascontiguousarray(array)
    if address(array) % ALIGNED == 0:
        return array
    space = np.empty(array.nbytes + ALIGNED, np.uint8)
    start = -address(space) % ALIGNED
    held = space[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    held[...] = array
    return held


class Room:
    """Memory for arrays of these sizes in bytes, side by side: their sum may be large
    enough for large pages where each of them is not."""

    def __init__(self, sizes: Iterable[int]):
        whole = sum(size + ALIGNED for size in sizes if size < _ASKED)
        self._left = np.empty(whole if whole >= _ASKED else 0, np.uint8)

    def held(self, array: Any) -> Any:
        """The array, dense and at the beginning of a cache line."""
        array = np.ascontiguousarray(array)
        start = -address(self._left) % ALIGNED
        behind = start + array.nbytes
        if array.nbytes >= _ASKED or behind > self._left.nbytes:
            return aligned(array)
        held = self._left[start:behind].view(array.dtype).reshape(array.shape)
        self._left = self._left[behind:]
        held[...] = array
        return held


class Ends:
    """How the arguments of a run get into arrays, and its results out of them.

    Small arguments are copied to and from arrays that belong to a space; others
    are pointed to, other results are arrays that a run makes.

    outside: (slot, size) of arrays that a run makes. faults: slots that say that a call
    cannot be computed. is_whole: no step runs eagerly; one that does may keep what it
    is given, which is new in each run then. in_place: the places of arguments that
    records write to, which are never copied.
    """

    def __init__(
        self,
        arguments: list[Fetch],
        results: list[Fetch],
        outside: list[tuple[int, int]],
        faults: list[int],
        is_whole: bool,
        in_place: Collection[int] = (),
    ):
        most = _SMALL if is_whole else -1
        copied = [e for e in arguments if e.size <= most and e.place not in in_place]
        self._copied = copied
        apart = {each.place for each in copied}
        self._pointed = [(e.place, e.slot) for e in arguments if e.place not in apart]
        self._held = {n: size for n, size in outside if size <= most or n in faults}
        self._held |= {each.slot: each.size for each in self._copied}
        self._made = [(n, size) for n, size in outside if n not in self._held]
        self._own = [each for each in results if each.slot in self._held]
        self._results = [each for each in results if each.slot not in self._held]
        self._faults = faults

    def settle(self, space: Space) -> Space:
        """Give a space its own arrays."""
        held = {n: aligned(np.zeros(size, np.uint8)) for n, size in self._held.items()}
        for slot, array in held.items():
            space.pointers[slot] = address(array)
        space.taken = [(each.place, each.array(held)) for each in self._copied]
        space.given = [(each.place, each.array(held)) for each in self._own]
        space.noted = [held[slot] for slot in self._faults]
        return space

    def enter(self, space: Space, alive: dict[int, Any], values: Any) -> None:
        """Let the slots have the call's arguments."""
        for place, own in space.taken:
            own[...] = values[place].data
        for place, slot in self._pointed:
            point(space.pointers, alive, slot, values[place].data)
        for slot, size in self._made:
            point(space.pointers, alive, slot, space.result(slot, size))

    def leave(self, space: Space, alive: dict[int, Any], values: Any) -> None:
        """Put the results among the values; raises Fault where there are none."""
        space.check()
        for place, own in space.given:
            values[place] = wrapped(Tensor, own.copy(), _CPU)
        for fetch in self._results:
            values[fetch.place] = fetch.of(alive)
