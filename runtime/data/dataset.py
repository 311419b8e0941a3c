"""The Dataset protocol (a length and items); arrays and columns as datasets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from burnish.errors import InputError
from burnish.tensor import Tensor

T_co = TypeVar("T_co", covariant=True)


class Dataset(Protocol[T_co]):
    """Whatever has a length and items from 0 upwards; a list is one."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> T_co: ...


@runtime_checkable
class BatchDataset(Protocol):
    """A dataset that gives several items at once, stacked field by field."""

    def get_batch(self, indices: np.ndarray, /) -> Any: ...


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

    def get_batch(self, indices: np.ndarray) -> tuple[Any, ...]:
        """The rows of a batch, one array of them for each array."""
        return tuple(array[indices] for array in self.arrays)


class TableDataset:
    """Columns of one length by name, seen as items (rows): dicts of name and value.

    Text is kept in NumPy's StringDType; a batch has a list of it.
    """

    def __init__(self, columns: Mapping[str, Any]):
        self.columns = {name: _column(column) for name, column in columns.items()}
        lengths = {name: len(column) for name, column in self.columns.items()}
        if len(set(lengths.values())) != 1:
            raise InputError(
                f"TableDataset: expected columns of one length, got {lengths}"
            )

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, index: int, /) -> dict[str, Any]:
        return {name: column[index] for name, column in self.columns.items()}

    def get_batch(self, indices: np.ndarray) -> dict[str, Any]:
        """The rows of a batch, an array for each column of numbers."""
        return {
            name: column[indices].tolist()
            if column.dtype.kind == "T"
            else column[indices]
            for name, column in self.columns.items()
        }


def _column(values: Any) -> np.ndarray:
    text = len(values) and isinstance(values[0], str)
    return np.asarray(values, np.dtypes.StringDType() if text else None)


class FakeDataset:
    """`length` items that `make(generator)` draws; item i is the same every time.

    make: called with a NumPy Generator that depends on `seed` and i alone.
    """

    def __init__(
        self, length: int, make: Callable[[np.random.Generator], Any], seed: int = 0
    ):
        if length < 0:
            raise InputError(f"FakeDataset: expected a length from 0, got {length}")
        self.length = length
        self.make = make
        self.seed = seed

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int, /) -> Any:
        return self.make(np.random.default_rng([self.seed, in_range(index, self)]))


def in_range(index: int, dataset: Dataset[Any]) -> int:
    """`index` counted from the start; IndexError when there is no such item."""
    count = len(dataset)
    if not -count <= index < count:
        name = type(dataset).__name__
        raise IndexError(f"{name}: expected an index below {count}, got {index}")
    return index % count


def stack(items: Sequence[Any]) -> Any:
    """Items as one: arrays, tensors and numbers stacked, tuples and dicts by field.

    Anything else (text, None, lists) stays a list of the items' values. Raises
    InputError when arrays differ in shape.
    """
    if isinstance(items[0], tuple | dict):
        return by_field(items, stack)
    items = as_arrays(items)
    first = items[0]
    if not isinstance(first, np.ndarray | np.generic | int | float | complex):
        return list(items)
    shapes = list(dict.fromkeys(np.shape(item) for item in items))
    if len(shapes) > 1:
        raise InputError(
            f"stack: expected items of one shape, got {shapes[0]} and {shapes[1]}; "
            "give batches `collate=data.padded()` or `collate=data.as_lists`"
        )
    return np.stack(items)


def as_arrays(items: Sequence[Any]) -> Sequence[Any]:
    """The items with tensors as NumPy arrays."""
    if not isinstance(items[0], Tensor):
        return items
    return [item.numpy() if isinstance(item, Tensor) else item for item in items]


def by_field(items: Sequence[Any], make: Callable[[Sequence[Any]], Any]) -> Any:
    """`make(values)` for every field of items that are tuples or dicts."""
    first = items[0]
    if isinstance(first, dict):
        return {name: make([item[name] for item in items]) for name in first}
    fields = [make(values) for values in zip(*items, strict=True)]
    return type(first)(*fields) if hasattr(first, "_fields") else tuple(fields)
