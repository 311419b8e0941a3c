"""Live memory: bytes of operators' results that are still referenced."""

from __future__ import annotations

import weakref
from typing import Any


class Live:
    """Counts arrays by the buffer that they own or view, until they are freed."""

    def __init__(self) -> None:
        self.bytes = self.most = 0
        self._held: dict[int, tuple[weakref.ref[Any], int]] = {}

    def known(self, array: Any) -> None:
        """An argument: its buffer was there before."""
        buffer = _buffer(array)
        if id(buffer) not in self._held:
            self._hold(buffer, 0)

    def made(self, array: Any) -> int:
        """A result; the bytes of its buffer, 0 where that was there before."""
        buffer = _buffer(array)
        if id(buffer) in self._held or not self._hold(buffer, buffer.nbytes):
            return 0
        self.bytes += buffer.nbytes
        self.most = max(self.most, self.bytes)
        return int(buffer.nbytes)

    def _hold(self, buffer: Any, size: int) -> bool:
        key = id(buffer)

        def freed(_: Any) -> None:
            self._held.pop(key, None)
            self.bytes -= size

        try:
            self._held[key] = weakref.ref(buffer, freed), size
        except TypeError:  # nothing that can be watched
            return False
        return True


def _buffer(array: Any) -> Any:
    """The array that owns the memory."""
    while type(base := getattr(array, "base", None)) is type(array):
        array = base
    return array
