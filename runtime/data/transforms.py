"""Views of datasets: lazy, of known length, the same items every time.

Each asks the dataset below only for the items it is asked for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from burnish.data.dataset import BatchDataset, Dataset, in_range, stack
from burnish.errors import InputError

T = TypeVar("T")


class Subset:
    """The items of a dataset that `indices` names, in that order; a range will do."""

    def __init__(self, dataset: Dataset[Any], indices: Any):
        found = np.asarray(indices)
        if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
            raise InputError(
                f"{type(self).__name__}: expected whole numbers (n,) as indices, got "
                f"{found.dtype} {found.shape}"
            )
        count = len(dataset)
        wrong = found[(found < -count) | (found >= count)]
        if wrong.size:
            raise InputError(
                f"{type(self).__name__}: expected indices below {count}, got {wrong[0]}"
            )
        self.dataset = dataset
        self.indices = found.astype(np.int64) % max(count, 1)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int, /) -> Any:
        return self.dataset[int(self.indices[in_range(index, self)])]


class ShuffledDataset(Subset):
    """A dataset's items in an order that the seed decides, once for all epochs."""

    def __init__(self, dataset: Dataset[Any], seed: int = 0):
        order = np.random.default_rng(seed).permutation(len(dataset))
        super().__init__(dataset, order)


class SamplerDataset(Subset):
    """Items drawn from a dataset: `size` of them decide how long an epoch is.

    size: how many, or a share of the dataset when it is a float; replacement: whether
    an item may come again. Without, and for more than there are, every item comes as
    often as any other, give or take once.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        size: int | float,
        *,
        replacement: bool = True,
        seed: int = 0,
    ):
        total = len(dataset)
        count = round(total * size) if isinstance(size, float) else size
        if count < 0 or (count and not total):
            raise InputError(
                f"SamplerDataset: expected a size from 0 and items to draw from, got "
                f"{size} of {total}"
            )
        rng = np.random.default_rng(seed)
        if replacement:
            drawn = rng.integers(0, total, count) if count else np.arange(0)
        else:
            rounds = -(-count // max(total, 1))
            orders = [rng.permutation(total) for _ in range(rounds)]
            drawn = np.concatenate([np.arange(0), *orders])[:count]
        super().__init__(dataset, drawn)


class MappedDataset:
    """`function(item)` for every item of a dataset, computed when asked for."""

    def __init__(self, dataset: Dataset[T], function: Callable[[T], Any]):
        self.dataset = dataset
        self.function = function

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int, /) -> Any:
        return self.function(self.dataset[index])


class ConcatDataset:
    """Datasets concatenated into one."""

    def __init__(self, *datasets: Dataset[Any]):
        self.datasets = datasets
        lengths = [len(dataset) for dataset in datasets]
        self._ends = np.cumsum([0, *lengths])[1:]

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def __getitem__(self, index: int, /) -> Any:
        index = in_range(index, self)
        which = int(np.searchsorted(self._ends, index, "right"))
        begin = int(self._ends[which - 1]) if which else 0
        return self.datasets[which][index - begin]


class WindowsDataset:
    """Windows of `size` neighbouring items, one every `stride` items.

    A window is its items stacked: for items that are numbers an array (size,), for
    tuples and dicts each field so. Items at the end that fill no window are left
    out.
    """

    def __init__(self, dataset: Dataset[Any], size: int, stride: int = 1):
        if size < 1 or stride < 1:
            raise InputError(
                f"WindowsDataset: expected a size and a stride from 1, got {size} and "
                f"{stride}"
            )
        self.dataset = dataset
        self.size = size
        self.stride = stride

    def __len__(self) -> int:
        return max(0, (len(self.dataset) - self.size) // self.stride + 1)

    def __getitem__(self, index: int, /) -> Any:
        begin = in_range(index, self) * self.stride
        places = range(begin, begin + self.size)
        if isinstance(self.dataset, BatchDataset):
            return self.dataset.get_batch(np.array(places))
        return stack([self.dataset[place] for place in places])


def split(dataset: Dataset[Any], parts: int) -> list[Subset]:
    """A dataset cut into `parts` runs of neighbours, as equal as can be."""
    if parts < 1:
        raise InputError(f"split: expected a number of parts from 1, got {parts}")
    cuts = np.array_split(np.arange(len(dataset)), parts)
    return [Subset(dataset, cut) for cut in cuts]


def split_chunks(dataset: Dataset[Any], size: int) -> list[Subset]:
    """A dataset cut into runs of `size` neighbours; the last one may be shorter."""
    if size < 1:
        raise InputError(f"split_chunks: expected a size from 1, got {size}")
    total = len(dataset)
    begins = range(0, total, size)
    return [Subset(dataset, range(i, min(i + size, total))) for i in begins]


def train_test_split(
    dataset: Dataset[Any], test: float = 0.2, seed: int = 0
) -> tuple[Subset, Subset]:
    """Two parts of a dataset with nothing in common; the same ones for one seed.

    test: the second part's share, or its length when it is a whole number above 0.
    """
    total = len(dataset)
    count = test if isinstance(test, int) else round(total * test)
    if not 0 <= count <= total:
        raise InputError(
            f"train_test_split: expected a share or at most {total} items, got {test}"
        )
    order = np.random.default_rng(seed).permutation(total)
    return Subset(dataset, order[count:]), Subset(dataset, order[:count])
