"""Iterate over the batches of an epoch: progress, timing, transfer to the device."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any

from burnish._engine.pytree import mapped
from burnish.backend import Device
from burnish.learner.display.renderer import Progress
from burnish.learner.events import Entry
from burnish.learner.metric.base import Moment
from burnish.tensor import Tensor


class Loop:
    """(iteration, batch) for every batch of an epoch after the first `done`."""

    def __init__(
        self, split: str, epoch: int, epochs: int, batches: Iterable[Any], done: int = 0
    ):
        self.split = split
        self.epoch = epoch
        self.epochs = epochs
        self.iteration = done
        if hasattr(batches, "epoch"):
            batches.epoch = epoch - 1
        self.total = len(batches) if isinstance(batches, Sized) else None
        self._batches = iter(batches)
        for _ in range(done):
            next(self._batches, None)
        self._began = self._tick = time.perf_counter()

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        for batch in self._batches:
            self.iteration += 1
            yield self.iteration, batch

    def moment(self, batch: Any, rate: float | None = None) -> Moment:
        """Where the batch is that was just worked on; ends its time."""
        now = time.perf_counter()
        took, self._tick = now - self._tick, now
        return Moment(
            self.split, self.epoch, self.iteration, rate, took, size_of(batch)
        )

    def progress(self, entries: Sequence[Entry]) -> Progress:
        """The progress that a renderer shows."""
        return Progress(
            split=self.split,
            epoch=self.epoch,
            epochs=self.epochs,
            iteration=self.iteration,
            total=self.total,
            seconds=self._tick - self._began,
            entries=entries,
        )


def moved(batch: Any, device: Device) -> Any:
    """A batch with its tensors on the inner device of `device`.

    Tensors are found in tuples, lists and dicts; anything else stays.
    """
    inner = device.inner()
    return mapped(
        batch, lambda item: item.to(inner) if isinstance(item, Tensor) else item
    )


def size_of(batch: Any) -> int:
    """The items of a batch: the length of the first array in it."""
    if isinstance(batch, dict):
        batch = list(batch.values())
    if isinstance(batch, tuple | list):
        return size_of(batch[0]) if batch else 0
    shape = getattr(batch, "shape", ())
    return shape[0] if shape else 1
