"""Picking elements, putting them in order, taking them out as Python numbers."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any

from burnish import ops
from burnish.autodiff import Variable, recording
from burnish.errors import InputError
from burnish.methods._bind import method
from burnish.operator import explained
from burnish.ops._shapes import values as plain_values

if TYPE_CHECKING:
    from burnish.tensor import Tensor


class ElementMethods(Variable):
    """Elements by place, by order and by value."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Tensor:
        if (rows := _rows(index)) is not None and rows[1] < len(self.shape):
            numbers, axis = rows
            if numbers.device.inner() is self.device.inner():
                return ops.take_slices(self, numbers, axis=axis)
        return ops.getitem(self, index=_plain(index))

    @explained
    def set_item(self, index: Any, values: Any) -> Tensor:
        """A copy with `values` at [index]; tensors never change in place."""
        return ops.set_item(self, values, index=_plain(index))

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

    narrow = method(lambda: ops.narrow)
    masked_fill = method(lambda: ops.masked_fill)
    argwhere = method(lambda: ops.argwhere)

    one_hot = method(lambda: ops.one_hot)
    take = method(lambda: ops.take)
    multinomial = method(lambda: ops.multinomial)
    gather_elements = method(lambda: ops.gather_elements)
    take_along_axis = method(lambda: ops.take_along_axis)
    scatter_elements = method(lambda: ops.scatter_elements)
    gather_nd = method(lambda: ops.gather_nd)
    scatter_nd = method(lambda: ops.scatter_nd)
    scatter_slices = method(lambda: ops.scatter_slices)
    non_zero = method(lambda: ops.non_zero)
    sort = method(lambda: ops.sort, scalars=True)
    argsort = method(lambda: ops.argsort, scalars=True)
    top_k = method(lambda: ops.top_k, scalars=True)

    arg_top_k = method(lambda: ops.arg_top_k)
    sort_with_indices = method(lambda: ops.sort_with_indices)
    tril = method(lambda: ops.tril)
    triu = method(lambda: ops.triu)

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
        if recording.tape is not None and recording.tape.follows:
            return recording.tape.way(self)
        return bool(self.data)

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        return index(self.item())


def _rows(index: Any) -> tuple[Any, int] | None:
    """A tensor of integers behind whole axes, and how many: slices by computed numbers.

    None of any other index.
    """
    *whole, last = index if isinstance(index, tuple) and index else (index,)
    if not isinstance(last, Variable) or last.dtype.kind not in "iu":
        return None
    is_behind = all(isinstance(item, slice) and item == slice(None) for item in whole)
    return (last, len(whole)) if is_behind else None


def _plain(index: Any) -> Any:
    """An index that may hold tensors as one that holds plain arrays."""
    if isinstance(index, tuple):
        return tuple(map(_plain, index))
    if isinstance(index, slice):
        return slice(*map(_bound, (index.start, index.stop, index.step)))
    return plain_values(index) if isinstance(index, Variable) else index


def _bound(place: Any) -> Any:
    """A slice's end as a number, where it is a tensor."""
    return index(place) if isinstance(place, ElementMethods) else place
