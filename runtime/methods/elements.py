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
from burnish.ops.arrays._scalars import along
from burnish.ops.arrays.index import to_index

if TYPE_CHECKING:
    from burnish.tensor import Tensor


class ElementMethods(Variable):
    """Elements by place, by order and by value."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Tensor:
        return ops.getitem(self, index=to_index(index))

    @explained
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

    narrow = method(ops.narrow)
    masked_fill = method(ops.masked_fill)
    argwhere = method(ops.argwhere)

    one_hot = method(ops.one_hot)
    take = method(ops.take)
    multinomial = method(ops.multinomial)
    gather_elements = method(ops.gather_elements)
    take_along_axis = method(ops.take_along_axis)
    scatter_elements = method(ops.scatter_elements)
    gather_nd = method(ops.gather_nd)
    scatter_nd = method(ops.scatter_nd)
    scatter_slices = method(ops.scatter_slices)
    non_zero = method(ops.non_zero)
    sort = along(method(ops.sort))
    argsort = along(method(ops.argsort))
    top_k = along(method(ops.top_k))

    arg_top_k = method(ops.arg_top_k)
    sort_with_indices = method(ops.sort_with_indices)
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
        if recording.tape is not None and recording.tape.follows:
            return recording.tape.way(self)
        return bool(self.data)

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        return index(self.item())
