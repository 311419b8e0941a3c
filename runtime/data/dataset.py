"""Datasets: things with a length and items; views of them; arrays as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np

from burnish.errors import InputError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Dataset(Protocol[T_co]):
    """Whatever has a length and items from 0 upwards; a list is one.

    `dataset.take(indices)`, where it exists, gives a batch at once.
    """

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> T_co: ...


class ArrayDataset:
    """Arrays of one length, seen as items (one row of each)."""

    def __init__(self, *arrays: Any):
        lengths = [len(array) for array in arrays]
        if not lengths or len(set(lengths)) > 1:
            raise InputError(
                f"ArrayDataset: expected arrays of one length, got {lengths}"
            )
        self.arrays = arrays

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __getitem__(self, index: int, /) -> tuple[Any, ...]:
        return tuple(array[index] for array in self.arrays)

    def take(self, indices: np.ndarray) -> tuple[Any, ...]:
        """The rows of a batch, one array of them for each array."""
        return tuple(array[indices] for array in self.arrays)


class Subset:
    """The items of a dataset that `indices` names, in that order."""

    def __init__(self, dataset: Dataset[Any], indices: Any):
        self.dataset = dataset
        self.indices = np.asarray(indices)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int, /) -> Any:
        return self.dataset[int(self.indices[index])]

    def take(self, indices: np.ndarray) -> Any:
        """The items of a batch."""
        return take(self.dataset, self.indices[indices])


class MappedDataset:
    """`function(item)` for every item of a dataset, computed when asked for."""

    def __init__(self, dataset: Dataset[T], function: Callable[[T], Any]):
        self.dataset = dataset
        self.function = function

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int, /) -> Any:
        return self.function(self.dataset[index])


def take(dataset: Dataset[Any], indices: np.ndarray) -> Any:
    """The items at `indices`, stacked field by field."""
    if hasattr(dataset, "take"):
        return dataset.take(indices)
    items = [dataset[int(index)] for index in indices]
    if isinstance(items[0], tuple):
        return tuple(np.stack(field) for field in zip(*items, strict=True))
    return (np.stack(items),)


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
