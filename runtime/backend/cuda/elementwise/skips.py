"""Skips: steps of half-precision training that were discarded for overflowed gradients.

An optimizer's count of steps leaves them out, as its rule's numbers do. The GPU alone
knows at first, and the host learns it some launches later without waiting: until then
it gives the kernel the numbers of every count that is possible.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import Any

import numpy as np

MOST = 3
"""Launches whose end the host does not know when it launches another."""

_all: weakref.WeakSet[Skips] = weakref.WeakSet()


class Skips:
    """The launches of a loss scale, the last of them of unknown end.

    overflow: on the GPU, whether this launch skips, and how many have. known: how many
    of them the host has heard of.
    """

    def __init__(self, overflow: Any):
        import cupy

        self.overflow, self.known = overflow, 0
        self._waiting: deque[tuple[Any, int, list[dict[str, Any]]]] = deque()
        self._memory = cupy.cuda.alloc_pinned_memory(4 * (MOST + 1))
        self._flags = np.frombuffer(self._memory, np.int32, MOST + 1)
        self._count, self._lock = 0, threading.Lock()
        _all.add(self)

    @property
    def possible(self) -> int:
        """How many launches may have skipped that the host counts as steps."""
        return len(self._waiting)

    def launched(self, states: list[dict[str, Any]]) -> None:
        """A launch has been asked for that counts in these states of an optimizer."""
        import cupy

        with self._lock:
            slot, self._count = self._count % (MOST + 1), self._count + 1
            stream = cupy.cuda.get_current_stream()
            cupy.cuda.runtime.memcpyAsync(
                self._memory.ptr + 4 * slot, self.overflow.data.ptr, 4, 2, stream.ptr
            )
            event = cupy.cuda.Event(disable_timing=True)
            event.record(stream)
            self._waiting.append((event, slot, states))

    def look(self) -> None:
        """Hear of launches that ended; wait for one where too many did not."""
        self._hear(MOST)

    def settle(self) -> None:
        """Hear of every launch, which waits for the last one."""
        self._hear(0)

    def _hear(self, most: int) -> None:
        with self._lock:
            while self._waiting:
                event, slot, states = self._waiting[0]
                if len(self._waiting) <= most and not event.done:
                    return
                event.synchronize()
                self._waiting.popleft()
                if self._flags[slot]:
                    self.known += 1
                    for state in states:
                        state["step"] -= 1


def settle() -> None:
    """Let all states of optimizers have the counts of the steps that were taken."""
    for each in [*_all]:
        each.settle()
