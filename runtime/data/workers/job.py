"""Load a batch from its indices: the job of every worker, and its errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from burnish.data.collate import Collate
from burnish.data.dataset import BatchDataset, Dataset, stack
from burnish.data.transforms import Subset
from burnish.errors import DataError

Batcher = Callable[..., Any]
Augment = Callable[[Any, np.random.Generator], Any]
_AUGMENT = 1  # keeps its draws apart from those of the order


@dataclass(frozen=True)
class Job:
    """Loads, augments, collates and batches the items at some indices.

    Draws depend on (seed, epoch, index) alone, so it does not matter who works.
    """

    dataset: Dataset[Any]
    collate: Collate | None
    augment: Augment | None
    batcher: Batcher | None
    seed: int

    def __call__(self, epoch: int, indices: np.ndarray) -> Any:
        if not len(indices):  # one process's part of a batch that is too small for all
            fields = _nothing(self._fields(epoch, np.zeros(1, int)))
            return self._batched(fields, "no items")
        return self._batched(self._fields(epoch, indices), _listed(indices))

    def _fields(self, epoch: int, indices: np.ndarray) -> Any:
        dataset: Any = self.dataset
        places = indices
        while getattr(type(dataset), "__getitem__", None) is Subset.__getitem__:
            dataset, places = dataset.dataset, dataset.indices[places]
        whole = self.collate is None and self.augment is None
        if whole and isinstance(dataset, BatchDataset):
            try:
                return dataset.get_batch(places)
            except Exception as error:
                raise self._failure(_listed(indices), error) from error
        items = [
            self._item(epoch, int(index), dataset, int(place))
            for index, place in zip(indices, places, strict=True)
        ]
        try:
            return (self.collate or stack)(items)
        except Exception as error:
            raise self._failure(_listed(indices), error) from error

    def _item(self, epoch: int, index: int, dataset: Any, place: int) -> Any:
        try:
            item = dataset[place]
            if self.augment is None:
                return item
            source = np.random.SeedSequence(
                [self.seed, epoch, index], spawn_key=(_AUGMENT,)
            )
            return self.augment(item, np.random.default_rng(source))
        except Exception as error:
            raise self._failure(f"item {index}", error) from error

    def _batched(self, fields: Any, which: str) -> Any:
        plain = isinstance(fields, tuple | dict)
        fields = fields if plain else (fields,)
        if self.batcher is None:
            return fields
        try:
            if isinstance(fields, dict):
                return self.batcher(fields)
            return self.batcher(*fields)
        except Exception as error:
            raise self._failure(f"the batcher, {which}", error) from error

    def _failure(self, which: str, error: Exception) -> DataError:
        kind = type(self.dataset).__name__
        message = f"{type(error).__name__}: {error}"
        return DataError(f"{kind}, {which}: {message}")


def _listed(indices: np.ndarray) -> str:
    few = ", ".join(map(str, indices[:4].tolist()))
    return f"items {few}" + (f", ... ({len(indices)})" if len(indices) > 4 else "")


def _nothing(fields: Any) -> Any:
    """Fields of one item without it: as arrays of length 0."""
    if isinstance(fields, dict):
        return {name: _nothing(value) for name, value in fields.items()}
    if isinstance(fields, tuple):
        cut = [_nothing(value) for value in fields]
        return type(fields)(*cut) if hasattr(fields, "_fields") else tuple(cut)
    return fields[:0]
