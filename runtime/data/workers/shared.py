"""Values in shared memory: pickled, with arrays stored without copies.

Only the process that made a block removes it, so nothing outlives its owner.
"""

from __future__ import annotations

import os
import pickle
import secrets
import shutil
from typing import Any

import numpy as np

from burnish.errors import DataError

_ALIGNED = 64
_MEMORY = "/dev/shm"


class Pickled:
    """A value as pieces of bytes: the pickle, then its arrays, which are not copied."""

    def __init__(self, value: Any):
        buffers: list[pickle.PickleBuffer] = []
        head = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
        self._pieces = [memoryview(head), *(buffer.raw() for buffer in buffers)]
        self.sizes = [piece.nbytes for piece in self._pieces]
        self.total = sum(map(_rounded, self.sizes))

    def write(self, memory: memoryview) -> None:
        """Concatenate the pieces."""
        place = np.frombuffer(memory, np.uint8)
        for piece in self._pieces:
            place[: piece.nbytes] = np.frombuffer(piece, np.uint8)
            place = place[_rounded(piece.nbytes) :]


def read(memory: memoryview, sizes: list[int], *, copy: bool) -> Any:
    """The value that `Pickled` wrote; without `copy` its arrays view `memory`."""
    pieces: list[Any] = []
    begin = 0
    for size in sizes:
        piece: Any = memory[begin : begin + size]
        pieces.append(np.frombuffer(piece, np.uint8).copy() if copy else piece)
        begin += _rounded(size)
    head, *buffers = pieces
    return pickle.loads(head, buffers=buffers)


def _rounded(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED


class Block:
    """Shared memory that this process owns."""

    def __init__(self, size: int):
        from multiprocessing.shared_memory import SharedMemory

        # missing space is only noticed on writing, as a bus error
        if os.path.isdir(_MEMORY) and shutil.disk_usage(_MEMORY).free < size:
            raise DataError(
                f"batches: expected {size} bytes free in {_MEMORY}, got "
                f"{shutil.disk_usage(_MEMORY).free}; give the container more "
                "(--shm-size), or use threads"
            )
        name = f"burnish_{os.getpid()}_{secrets.token_hex(4)}"
        self._memory: Any = SharedMemory(name, create=True, size=max(size, 1))
        self.name = self._memory.name

    @property
    def memory(self) -> memoryview:
        """The bytes, for as long as the block is there."""
        memory: memoryview = self._memory.buf
        return memory

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()
        self._memory.unlink()
