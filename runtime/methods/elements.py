"""Picking elements, putting them in order, taking them out as Python numbers."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from burnish import ops
from burnish.autodiff import Variable
from burnish.errors import InputError
from burnish.methods._bind import along, method, whole
from burnish.ops._shapes import axes_of
from burnish.ops.index import to_index

if TYPE_CHECKING:
    from burnish.tensor import Tensor


class ElementMethods(Variable):
    """Elements by place, by order and by value."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Tensor:
        return ops.getitem(self, index=to_index(index))

    def set_item(self, index: Any, values: Any) -> Tensor:
        """A copy with `values` at [index]; tensors never change in place."""
        return ops.set_item(self, values, index=to_index(index))

    def __setitem__(self, index: Any, values: Any) -> None:
        raise TypeError(
            "tensors never change in place: x = x.set_item(index, values), or "
            "x.inplace(lambda x: x.set_item(index, values))"
        )

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len: expected a tensor with axes, got one without")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def narrow(self, axis: int, start: int, length: int) -> Tensor:
        """`length` slices along an axis from `start` on, which may count from the end.

        Raises InputError for slices that are not there.
        """
        total = self.shape[axes_of(axis, len(self.shape))[0]]
        start, length = (
            whole("narrow", "start", start),
            whole("narrow", "length", length),
        )
        begin = start + total if start < 0 else start
        if begin < 0 or length < 0 or begin + length > total:
            raise InputError(
                f"narrow: expected slices from 0 to {total} along axis {axis}, "
                f"got {length} from {start} on"
            )
        return ops.slice_(self, (begin,), (begin + length,), (axis,))

    def masked_fill(self, mask: Any, value: Any) -> Tensor:
        """`value` where the mask holds; the dtype stays."""
        return ops.cast(ops.where(mask, value, self), dtype=self.dtype)

    def argwhere(self) -> Tensor:
        """The positions of what is not zero, one a row."""
        places = ops.non_zero(self).T
        return places if self.shape else places[:, :0]

    def one_hot(
        self,
        depth: int,
        on: float = 1.0,
        off: float = 0.0,
        *,
        axis: int = -1,
        dtype: Any = "float32",
    ) -> Tensor:
        """Integers as vectors of length `depth` along a new axis, `on` in one place."""
        return ops.one_hot(self, depth, np.asarray((off, on), dtype), axis=axis)

    def take(self, indices: Any, axis: int | None = None) -> Tensor:
        """Elements by number, of all of them in order; with an axis slices along it."""
        if axis is None:
            return ops.gather(ops.reshape(self, shape=(-1,)), indices)
        return self._slices(indices, axis=axis)

    def multinomial(self, num_samples: int, replacement: bool = False) -> Tensor:
        """Numbers drawn by these weights, along the last axis; int64."""
        return ops.multinomial(self, num_samples=num_samples, replacement=replacement)

    gather = method(ops.gather)
    _slices = along(gather)
    gather_elements = method(ops.gather_elements)
    take_along_axis = method(ops.take_along_axis)
    scatter_elements = method(ops.scatter_elements)
    gather_nd = method(ops.gather_nd)
    scatter_nd = method(ops.scatter_nd)
    scatter_slices = method(ops.scatter_slices)
    non_zero = method(ops.non_zero)
    sort = along(method(ops.sort))
    argsort = along(method(ops.arg_sort))
    top_k = along(method(ops.top_k))

    @along
    def arg_top_k(self, k: int, axis: int = -1, largest: bool = True) -> Tensor:
        """Where the k greatest (or least) along an axis are, best first."""
        return ops.top_k_places(self, k=k, axis=axis, largest=largest)

    @along
    def sort_with_indices(
        self, axis: int = -1, descending: bool = False
    ) -> tuple[Tensor, Tensor]:
        """The elements in order along an axis, and where they were."""
        places = ops.arg_sort(self, axis=axis, descending=descending)
        return ops.take_along_axis(self, places, axis=axis), places

    tril = method(ops.tril)
    triu = method(ops.triu)

    # --- as Python numbers ---

    def item(self) -> Any:
        """The only element as a Python number; InputError unless there is one."""
        if prod(self.shape) != 1:
            raise InputError(f"item: expected one element, got shape {self.shape}")
        return self.data.item()

    def __bool__(self) -> bool:
        if prod(self.shape) != 1:
            raise InputError(
                f"bool: the truth of shape {self.shape} is ambiguous, expected one "
                f"element; say any() or all()"
            )
        return bool(self.data)

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        return index(self.item())
