"""The loop of a worker process: wait for indices, load them, store the batch."""

from __future__ import annotations

import pickle
import signal
import traceback
from collections import deque
from typing import Any

from burnish.data.workers.job import Job
from burnish.data.workers.shared import Pickled, read
from burnish.errors import DataError


def work(pipe: Any, name: str, sizes: list[int]) -> None:
    """Answer tasks until the other end of the pipe is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    blocks = _Blocks()
    tasks: deque[Any] = deque()
    job: Job | None = None
    try:
        while True:
            slot, epoch, indices = tasks.popleft() if tasks else pipe.recv()
            try:
                if job is None:
                    job = read(blocks.open(name).toreadonly(), sizes, copy=False)
                batch = Pickled(job(epoch, indices))
            except Exception as error:
                pipe.send(("failed", *_described(error)))
                continue
            memory = blocks.open(slot)
            if memory.nbytes < batch.total:
                pipe.send(("needs", batch.total))
                blocks.forget(slot)
                while not isinstance(answer := pipe.recv(), str):
                    tasks.append(answer)  # they were on their way
                memory = blocks.open(answer)
            batch.write(memory)
            pipe.send(("done", batch.sizes))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


class _Blocks:
    """The parent's blocks that are open here."""

    def __init__(self) -> None:
        self._open: dict[str, Any] = {}

    def open(self, name: str) -> memoryview:
        from multiprocessing.shared_memory import SharedMemory

        if name not in self._open:
            self._open[name] = SharedMemory(name)
        return self._open[name].buf

    def forget(self, name: str) -> None:
        self._open.pop(name).close()


def _described(error: Exception) -> tuple[str, Exception | None, str]:
    """An error as it travels: message, cause if that can be sent, traceback."""
    trace = "".join(traceback.format_exception(error))
    if not isinstance(error, DataError):  # the job itself did not arrive
        return f"batches: {type(error).__name__}: {error}", None, trace
    try:
        cause = pickle.loads(pickle.dumps(error.__cause__))
    except Exception:  # a class that pickle cannot have raises anything
        cause = None
    return str(error), cause, trace
