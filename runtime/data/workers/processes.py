"""Processes that load batches.

Worker k gets every n-th task through a pipe of its own and answers in the same order.
Batches come back through shared memory that this process owns; messages stay small, so
neither end of a pipe ever waits for the other to read.
"""

from __future__ import annotations

import itertools
import pickle
import weakref
from collections import deque
from typing import Any

from burnish.data.workers.job import Job
from burnish.data.workers.loop import work
from burnish.data.workers.shared import Block, Pickled
from burnish.data.workers.threads import Task
from burnish.errors import DataError, InputError

_FIRST = 1 << 16  # bytes of a slot before anything is known of batches


class ProcessPool:
    """Processes with the job in memory that they share; they end with `close`."""

    def __init__(self, job: Job, count: int):
        from multiprocessing import get_context

        packed = _pickled(job)
        blocks = [Block(packed.total)]
        packed.write(blocks[0].memory)
        self._workers: list[_Worker] = []
        self.close = weakref.finalize(self, _end, self._workers, blocks)
        self._slots = _Slots(blocks)
        context = get_context("spawn")
        try:
            for _ in range(count):
                ours, theirs = context.Pipe()
                process = context.Process(
                    target=work,
                    args=(theirs, blocks[0].name, packed.sizes),
                    name="burnish-data",
                    daemon=True,
                )
                process.start()
                theirs.close()
                self._workers.append(_Worker(process, ours, self._slots))
        except BaseException:
            self.close()
            raise
        self._turns = itertools.cycle(self._workers)

    def start(self, task: Task) -> _Ticket:
        return next(self._turns).start(task)


class _Slots:
    """Blocks that are free to hold a batch."""

    def __init__(self, owned: list[Block]):
        self._owned = owned
        self._free: list[Block] = []
        self._size = _FIRST

    def take(self) -> Block:
        if self._free:
            return self._free.pop()
        block = Block(self._size)
        self._owned.append(block)
        return block

    def give_back(self, block: Block) -> None:
        self._free.append(block)

    def larger(self, block: Block, size: int) -> Block:
        """A block of at least `size` in place of one that was too small."""
        self._size = max(self._size, size + size // 4)
        self._owned.remove(block)
        block.close()
        block = Block(self._size)
        self._owned.append(block)
        return block


class _Worker:
    def __init__(self, process: Any, pipe: Any, slots: _Slots):
        self.process = process
        self.pipe = pipe
        self._slots = slots
        self._waiting: deque[_Ticket] = deque()

    def start(self, task: Task) -> _Ticket:
        ticket = _Ticket(self, self._slots.take())
        self._waiting.append(ticket)
        try:
            self.pipe.send((ticket.block.name, *task))
        except OSError:
            raise self._ended() from None
        return ticket

    def hear(self) -> None:
        """Wait for the answer to the oldest ticket, and give it that."""
        ticket = self._waiting[0]
        try:
            kind, *answer = self.pipe.recv()
            if kind == "needs":
                ticket.block = self._slots.larger(ticket.block, answer[0])
                self.pipe.send(ticket.block.name)
                return
        except (EOFError, OSError):
            raise self._ended() from None
        self._waiting.popleft()
        ticket.settle(kind, answer)
        self._slots.give_back(ticket.block)

    def _ended(self) -> DataError:
        self.process.join(5)
        return DataError(
            f"batches: a worker process ended with exit code {self.process.exitcode}; "
            "expected it to wait for work. It was killed (memory?), or the program "
            "that starts it has no `if __name__ == '__main__':` around its work"
        )


class _Ticket:
    def __init__(self, worker: _Worker, block: Block):
        self.block = block
        self._worker = worker
        self._wanted = True
        self._done = False
        self._value: Any = None
        self._error: DataError | None = None

    def settle(self, kind: str, answer: list[Any]) -> None:
        from burnish.data.workers.shared import read

        self._done = True
        if kind == "failed":
            message, cause, trace = answer
            self._error = DataError(message)
            self._error.__cause__ = cause
            self._error.add_note(f"in a worker process:\n{trace}")
        elif self._wanted:
            self._value = read(self.block.memory, answer[0], copy=True)

    def result(self) -> Any:
        while not self._done:
            self._worker.hear()
        if self._error is not None:
            raise self._error
        return self._value

    def cancel(self) -> None:
        self._wanted = False


def _end(workers: list[_Worker], blocks: list[Block]) -> None:
    """No process, pipe or block is left."""
    for worker in workers:
        worker.process.terminate()
    for worker in workers:
        worker.process.join()
        worker.process.close()
        worker.pipe.close()
    workers.clear()
    for block in blocks:
        block.close()
    blocks.clear()


def _pickled(job: Job) -> Pickled:
    try:
        return Pickled(job)
    except Exception as error:
        for name, part in vars(job).items():
            try:
                pickle.dumps(part)
            except Exception as reason:
                raise InputError(
                    f"batches: expected a {name} that processes can be sent, got "
                    f"{part!r} ({reason}); make it of functions and classes that a "
                    "module has, or use threads (processes=False)"
                ) from error
        raise
