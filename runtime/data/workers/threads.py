"""Threads that load batches; and batches in order, whichever thread loads them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, Protocol

import numpy as np

from burnish.data.workers.job import Job

Task = tuple[int, np.ndarray]  # an epoch, and the indices of one batch


class Ticket(Protocol):
    """A task that was handed out."""

    def result(self) -> Any: ...

    def cancel(self) -> Any: ...


class Pool(Protocol):
    """Workers that begin a task at once, or as soon as one of them is free."""

    def start(self, task: Task) -> Ticket: ...

    def close(self) -> Any: ...


class ThreadPool:
    """Threads of this process: nothing is copied; NumPy and Pillow run side by side."""

    def __init__(self, job: Job, count: int):
        self._job = job
        self._threads = ThreadPoolExecutor(count, "burnish-data")

    def start(self, task: Task) -> Future[Any]:
        return self._threads.submit(self._job, *task)

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)


def in_order(pool: Pool, tasks: Iterable[Task], ahead: int) -> Iterator[Any]:
    """The tasks' results, in order; `ahead` of them are started beforehand."""
    left = iter(tasks)
    waiting: deque[Ticket] = deque()
    try:
        waiting.extend(map(pool.start, islice(left, ahead)))
        while waiting:
            result = waiting.popleft().result()
            waiting.extend(map(pool.start, islice(left, 1)))
            yield result
    finally:
        for ticket in waiting:
            ticket.cancel()
