"""Which items make a batch: a fixed number, or as many as fit once they are padded."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from burnish.errors import InputError


class BatchStrategy(Protocol):
    """Cuts the order of one epoch into batches of indices.

    rng: for draws of its own; None when the order is not shuffled.
    """

    def __call__(
        self, order: np.ndarray, rng: np.random.Generator | None, /
    ) -> Sequence[np.ndarray]: ...


class FixedBatches:
    """`size` items each; the last batch has the remaining items, or is dropped."""

    def __init__(self, size: int, drop_last: bool = False):
        if size < 1:
            raise InputError(f"batches: expected a batch size from 1, got {size}")
        self.size = size
        self.drop_last = drop_last

    def __call__(
        self, order: np.ndarray, rng: np.random.Generator | None
    ) -> list[np.ndarray]:
        begins = range(0, self.count(len(order)) * self.size, self.size)
        return [order[i : i + self.size] for i in begins]

    def count(self, total: int) -> int:
        """The batches of `total` items."""
        return total // self.size if self.drop_last else -(-total // self.size)


class LengthBatches:
    """Items of like length together, as many as have `most` elements when padded.

    lengths: of every item of the dataset, (n,); most: the limit of a batch's items
    times its longest one; pool: within so many items in a row are like ones looked for,
    so a larger one pads less and mixes less.
    """

    def __init__(self, lengths: Any, most: int, pool: int = 4096):
        self.lengths = np.asarray(lengths)
        self.most = most
        self.pool = pool
        if pool < 1:
            raise InputError(f"LengthBatches: expected a pool from 1, got {pool}")
        if self.lengths.size and self.lengths.max() > most:
            worst = int(self.lengths.argmax())
            raise InputError(
                f"LengthBatches: expected items of at most {most}, got item {worst} "
                f"of length {self.lengths[worst]}"
            )

    def __call__(
        self, order: np.ndarray, rng: np.random.Generator | None
    ) -> list[np.ndarray]:
        if len(order) != len(self.lengths):
            raise InputError(
                f"LengthBatches: expected a length for each of {len(order)} items, got "
                f"{len(self.lengths)}"
            )
        pools = [order[i : i + self.pool] for i in range(0, len(order), self.pool)]
        found = [batch for pool in pools for batch in self._cut(pool)]
        if rng is None:
            return found
        return [found[i] for i in rng.permutation(len(found))]

    def _cut(self, pool: np.ndarray) -> list[np.ndarray]:
        pool = pool[np.argsort(self.lengths[pool], kind="stable")]
        sizes = self.lengths[pool].tolist()
        found, begin = [], 0
        while begin < len(pool):

            def padded(last: int, begin: int = begin) -> int:
                return (last - begin + 1) * sizes[last]

            end = bisect_right(range(len(pool)), self.most, begin, key=padded)
            found.append(pool[begin:end])
            begin = end
        return found
