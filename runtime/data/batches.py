"""Batches of a dataset, in an order that a seed decides."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from burnish._engine.arguments import replaced_by
from burnish.backend import Device
from burnish.data.collate import Collate
from burnish.data.dataset import ArrayDataset, Dataset
from burnish.data.strategy import BatchStrategy, FixedBatches
from burnish.data.workers.job import Augment, Batcher, Job
from burnish.data.workers.threads import Pool, ThreadPool, in_order
from burnish.errors import InputError
from burnish.tensor import Tensor


class DataLoader:
    """Batches of tensors; every loop over it is an epoch.

    batch_size: items of a batch, or a strategy that cuts an epoch into batches;
    shuffle: a seed, with which each epoch has its own order, which depends on the seed
    and the epoch alone; drop_last: drop a last batch that is not full.

    augment: called with an item and a NumPy Generator that depends on (seed, epoch,
    index) alone; collate: makes the fields of a batch of a list of items (`stack` is
    the default); batcher: called with the fields (a dict as one argument), returns
    those of the result, to scale images, for example; device: where the tensors go.

    num_workers: threads, or processes, that load; 0 loads in the caller's thread.
    prefetch: batches each of them has ready or at work. Whoever loads, batches and
    their order are the same. Workers end with the loop, however it ends; in a `with`
    block of the loader they are kept from one epoch to the next.

    Raises DataError with the item's index when an item cannot be loaded.
    """

    @replaced_by(
        "DataLoader(dataset, 32, shuffle=0), whose options help(DataLoader) lists"
    )
    def __init__(
        self,
        dataset: Dataset[Any],
        batch_size: int | BatchStrategy,
        *,
        shuffle: int | None = None,
        drop_last: bool = False,
        augment: Augment | None = None,
        seed: int = 0,
        collate: Collate | None = None,
        batcher: Batcher | None = None,
        device: Device | str = "cpu",
        num_workers: int = 0,
        processes: bool = False,
        prefetch: int = 2,
    ):
        if num_workers < 0 or prefetch < 1:
            raise InputError(
                "batches: expected num_workers from 0 and prefetch from 1, got "
                f"{num_workers} and {prefetch}"
            )
        whole = isinstance(batch_size, int | np.integer)
        self.strategy: BatchStrategy = (
            FixedBatches(int(batch_size), drop_last) if whole else batch_size  # type: ignore[assignment,arg-type]
        )
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.drop_last = drop_last
        self.augment = augment
        self.seed = seed
        self.collate = collate
        self.batcher = batcher
        self.device = Device(device)
        self.num_workers = num_workers
        self.processes = processes
        self.prefetch = prefetch
        self.epoch = 0
        self._part = (0, 1)
        self._kept = _Kept()

    def part(self, rank: int, size: int) -> DataLoader:
        """Part `rank` of `size` of every batch: together they are `size` batches.

        One loader of `size` times the batch size has the items of all parts in this
        order; the last batch may leave nothing for some parts.
        """
        parted = copy.copy(self)
        parted._part = (rank, size)
        return parted

    def to(self, device: Device | str) -> DataLoader:
        """The same batches on another device."""
        moved = copy.copy(self)
        moved.device = Device(device)
        return moved

    def __len__(self) -> int:
        if isinstance(self.strategy, FixedBatches):
            return self._steps(self.strategy.count(len(self.dataset)))
        return self._steps(len(self._batches(self.epoch)))

    def __iter__(self) -> Iterator[Any]:
        epoch = self.epoch
        self.epoch += 1
        tasks = [(epoch, indices) for indices in self._plan(epoch)]
        job = Job(self.dataset, self.collate, self.augment, self.batcher, self.seed)
        if not self.num_workers:
            for task in tasks:
                yield on_device(job(*task), self.device)
            return
        pool = self._kept.pool or self._pool(job)
        if self._kept.wanted:
            self._kept.pool = pool
        try:
            ahead = self.num_workers * self.prefetch
            for fields in in_order(pool, tasks, ahead):
                yield on_device(fields, self.device)
        finally:
            if pool is not self._kept.pool:
                pool.close()

    def __enter__(self) -> DataLoader:
        self._kept.wanted = True
        return self

    def __exit__(self, *error: object) -> None:
        self._kept.close()

    def order(self, epoch: int) -> np.ndarray:
        """The indices of one epoch in the order in which they are visited."""
        rng = self._rng(epoch)
        count = len(self.dataset)
        return np.arange(count) if rng is None else rng.permutation(count)

    def _rng(self, epoch: int) -> np.random.Generator | None:
        if self.shuffle is None:
            return None
        return np.random.default_rng([self.shuffle, epoch])

    def _batches(self, epoch: int) -> list[np.ndarray]:
        return list(self.strategy(self.order(epoch), self._rng(epoch)))

    def _plan(self, epoch: int) -> list[np.ndarray]:
        """This part's batches of an epoch."""
        rank, size = self._part
        batches = self._batches(epoch)
        steps = self._steps(len(batches))
        batches += [np.arange(0)] * (steps * size - len(batches))
        return batches[rank : steps * size : size]

    def _steps(self, batches: int) -> int:
        """The number of batches of each part."""
        size = self._part[1]
        return batches // size if self.drop_last else -(-batches // size)

    def _pool(self, job: Job) -> Pool:
        if not self.processes:
            return ThreadPool(job, self.num_workers)
        from burnish.data.workers.processes import ProcessPool

        return ProcessPool(job, self.num_workers)


class _Kept:
    """Workers that outlive an epoch, of a loader and its parts."""

    def __init__(self) -> None:
        self.wanted = False
        self.pool: Pool | None = None

    def close(self) -> None:
        pool, self.pool, self.wanted = self.pool, None, False
        if pool is not None:
            pool.close()


def on_device(fields: Any, device: Device) -> Any:
    """Fields with arrays of numbers as tensors on `device`; anything else stays.

    Arrays are found in tuples, lists and dicts.
    """
    if isinstance(fields, dict):
        return {name: on_device(value, device) for name, value in fields.items()}
    if isinstance(fields, tuple) and hasattr(fields, "_fields"):
        return type(fields)(*(on_device(value, device) for value in fields))
    if isinstance(fields, tuple | list):
        return type(fields)(on_device(value, device) for value in fields)
    if isinstance(fields, Tensor):
        return fields.to(device)
    if getattr(getattr(fields, "dtype", None), "kind", "O") in "OSTUMm":
        return fields
    return Tensor(fields, device=device)


def batches(
    dataset: Dataset[Any] | tuple[Any, ...],
    batch_size: int | BatchStrategy,
    **options: Any,
) -> DataLoader:
    """A DataLoader over a dataset, or over arrays of one length; its options too."""
    if isinstance(dataset, tuple):
        dataset = ArrayDataset(*dataset)
    return DataLoader(dataset, batch_size, **options)
