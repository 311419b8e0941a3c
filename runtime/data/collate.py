"""Collate items of unequal sizes into the fields of a batch: padded, or as lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from burnish.data.dataset import as_arrays, by_field, stack
from burnish.errors import InputError

Collate = Callable[[Sequence[Any]], Any]


def padded(value: float = 0, *, multiple: int = 1) -> Collate:
    """A `collate` that fills arrays of unequal sizes up at the end of every axis.

    value: what they are filled with; multiple: sizes are rounded up to it, so that few
    different ones occur. Lists of numbers count as arrays.
    """
    if multiple < 1:
        raise InputError(f"padded: expected a multiple from 1, got {multiple}")
    return partial(_pad, value=value, multiple=multiple)


def _pad(items: Sequence[Any], *, value: float, multiple: int) -> Any:
    def again(field: Sequence[Any]) -> Any:
        return _pad(field, value=value, multiple=multiple)

    first = items[0]
    if isinstance(first, tuple | dict):
        return by_field(items, again)
    items = as_arrays(items)
    if isinstance(first, list):
        items = [np.asarray(item) for item in items]
    if not isinstance(items[0], np.ndarray) or items[0].ndim == 0:
        return stack(items)
    ranks = sorted({item.ndim for item in items})
    if len(ranks) > 1:
        raise InputError(f"padded: expected arrays of one rank, got ranks {ranks}")
    longest = np.max([item.shape for item in items], axis=0)
    shape = -(-longest // multiple) * multiple
    whole = np.full((len(items), *shape), value, np.result_type(*items))
    for place, item in zip(whole, items, strict=True):
        place[tuple(map(slice, item.shape))] = item
    return whole


def as_lists(items: Sequence[Any]) -> Any:
    """A `collate` that leaves every field a list of its values, one an item."""
    if isinstance(items[0], tuple | dict):
        return by_field(items, list)
    return list(items)
