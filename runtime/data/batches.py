"""Batches of a dataset, in an order that a seed decides."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from burnish.backend import Device
from burnish.data.dataset import ArrayDataset, Dataset, take
from burnish.errors import InputError
from burnish.tensor import Tensor

Batcher = Callable[..., Sequence[Any]]


class DataLoader:
    """Tuples of tensors, `batch_size` items each; every loop over it is an epoch.

    batcher: called with the arrays of a batch, returns those of the result (to scale
    images, for example); device: where the tensors go. With a shuffle seed each epoch
    has its own order, which depends on the seed and the epoch alone.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        batch_size: int,
        *,
        shuffle: int | None = None,
        drop_last: bool = False,
        batcher: Batcher | None = None,
        device: Device | str = "cpu",
    ):
        if batch_size < 1:
            raise InputError(f"batches: expected a batch size from 1, got {batch_size}")
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.drop_last = drop_last
        self.batcher = batcher
        self.device = Device(device)
        self.epoch = 0
        self._part = (0, 1)

    def part(self, rank: int, size: int) -> DataLoader:
        """Part `rank` of `size` of every batch: together they are `size` batches.

        One loader of `size` times the batch size has the items of all parts in this
        order; the last batch may leave nothing for some parts.
        """
        parted = copy.copy(self)
        parted._part = (rank, size)
        return parted

    def __len__(self) -> int:
        whole, rest = divmod(len(self.dataset), self.batch_size * self._part[1])
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        order = self.order(self.epoch)
        self.epoch += 1
        rank, size = self._part
        for i in range(len(self)):
            first = (i * size + rank) * self.batch_size
            chosen = order[first : first + self.batch_size]
            arrays = take(self.dataset, chosen)
            if self.batcher is not None:
                arrays = self.batcher(*arrays)
            yield tuple(Tensor(array, device=self.device) for array in arrays)

    def order(self, epoch: int) -> np.ndarray:
        """The indices of one epoch in the order in which they are visited."""
        if self.shuffle is None:
            return np.arange(len(self.dataset))
        return np.random.default_rng([self.shuffle, epoch]).permutation(
            len(self.dataset)
        )


def batches(
    dataset: Dataset[Any] | tuple[Any, ...],
    batch_size: int,
    *,
    shuffle: int | None = None,
    drop_last: bool = False,
    batcher: Batcher | None = None,
    device: Device | str = "cpu",
) -> DataLoader:
    """A DataLoader over a dataset, or over arrays of one length."""
    if isinstance(dataset, tuple):
        dataset = ArrayDataset(*dataset)
    return DataLoader(
        dataset,
        batch_size,
        shuffle=shuffle,
        drop_last=drop_last,
        batcher=batcher,
        device=device,
    )
