"""Taking from and adding into arrays by flat indices; each is the other's gradient."""

from __future__ import annotations

from math import prod
from typing import Any

from burnish.ops.arrays.index import put_rows, take_slices
from burnish.ops.arrays.shape import reshape


def take_flat(x: Any, indices: Any) -> Any:
    """x's elements at flat `indices` (over the whole of x); the shape of `indices`."""
    return take_slices(reshape(x, shape=(-1,)), indices)


def put_flat(x: Any, indices: Any, *, shape: tuple[int, ...]) -> Any:
    """Zeros of `shape` with x's elements added at flat `indices`; repeats add up."""
    flat, places = reshape(x, shape=(-1,)), indices.reshape(-1)
    return reshape(put_rows(flat, places, rows=prod(shape)), shape=shape)
