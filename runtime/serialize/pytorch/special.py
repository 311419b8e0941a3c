"""Quantized and sparse tensors, and tensors without values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burnish._files.budget import Budget
from burnish._files.shown import shown
from burnish.errors import BudgetError, RecordError
from burnish.serialize.lazy import LazyTensor
from burnish.serialize.pytorch.storage import StoredTensor


class QuantizedTensor(LazyTensor):
    """Integers with a scale and a zero point: one of each, or one a slice of `axis`.

    `read()` gives float32, scale * (integer - zero point); `values` are the integers.
    """

    __slots__ = ("axis", "scale", "values", "zero_point")
    is_quantized = True

    def __init__(self, values: StoredTensor, scale: Any, zero_point: Any, axis: Any):
        super().__init__(values.dtype, values.shape)
        self.values = values
        self.scale = scale
        self.zero_point = zero_point
        self.axis: int | None = axis

    def read(self) -> np.ndarray:
        with np.errstate(all="ignore"):  # a damaged scale may be anything
            return self._dequantized()

    def _dequantized(self) -> np.ndarray:
        scale = np.asarray(self.scale, np.float32)
        wide = "i8" if self.dtype == "qint32" else "i4"
        zero_point = np.asarray(self.zero_point)
        if zero_point.dtype.kind != "f":  # float_qparams has zero points in float
            zero_point = zero_point.astype(wide)
        if self.axis is not None:
            shape = [1] * self.ndim
            shape[self.axis] = -1
            scale, zero_point = scale.reshape(shape), zero_point.reshape(shape)
        values = self.values.read()
        if self.values.nbytes > self.values.storage.nbytes:
            self.values.storage.budget.take(8 * self.size)
        made = (values - zero_point).astype(np.float32)
        made *= scale
        made.flags.writeable = False
        return made

    def _bits(self) -> int:
        return self.values.kind.bits


class SparseTensor(LazyTensor):
    """Values and their positions; `read()` gives the dense array.

    layout: "coo", "csr", "csc", "bsr" or "bsc"; index: the indices, (dims, values), or
    the compressed and the plain ones. Raises RecordError on `read` when dense it would
    take more than the budget has, or when an index is outside.
    """

    __slots__ = ("budget", "counted", "index", "layout", "values")

    def __init__(
        self,
        layout: str,
        index: tuple[LazyTensor, ...],
        values: LazyTensor,
        shape: tuple[int, ...],
        budget: Budget,
    ):
        super().__init__(values.dtype, shape)
        self.layout = layout
        self.index = index
        self.values = values
        self.budget = budget
        self.counted = False

    def read(self) -> np.ndarray:
        values = self.values.read()
        need = math.prod(self.shape) * values.itemsize
        if not self.counted and not self.budget.fits(need):
            raise BudgetError(
                f"a sparse tensor of shape {shown(list(self.shape))} is refused as too "
                f"large to be made dense; read its values and index apart"
            )
        if not self.counted:
            self.budget.take(need)
            self.counted = True
        index = [part.read() for part in self.index]
        try:
            with np.errstate(all="ignore"):
                dense = _FILL[self.layout](index, values, self.shape)
        except (ValueError, IndexError, TypeError, OverflowError) as error:
            raise RecordError(
                f"a sparse tensor of shape {list(self.shape)}: {str(error)[:200]}"
            ) from None
        dense.flags.writeable = False
        return dense

    def _bits(self) -> int:
        return self.values._bits()


def _coo(index: list[np.ndarray], values: np.ndarray, shape: Any) -> np.ndarray:
    (where,) = index
    dims = len(where)
    if (where < 0).any():
        raise IndexError("a negative index")
    dense = np.zeros(shape, values.dtype)
    flat: Any = np.ravel_multi_index(tuple(where), shape[:dims])
    _summed(dense.reshape(-1, *shape[dims:]), flat, values)
    return dense


def _summed(into: np.ndarray, at: np.ndarray, values: np.ndarray) -> None:
    """Add `values` to the rows `at`; equal rows, which are adjacent, are summed."""
    order = np.argsort(at, kind="stable")
    rows, starts = np.unique(at[order], return_index=True)
    if len(rows) == len(at):
        into[at] = values
    else:
        into[rows] = np.add.reduceat(values[order], starts, axis=0)


def _compressed(by_row: bool) -> Any:
    def fill(index: list[np.ndarray], values: np.ndarray, shape: Any) -> np.ndarray:
        starts, others = index
        dense = np.zeros(shape, values.dtype)
        height, width = values.shape[starts.ndim :] or (1, 1)
        grid = dense.reshape(
            -1, shape[-2] // height, height, shape[-1] // width, width
        ).swapaxes(2, 3)
        batch = math.prod(starts.shape[:-1])
        for one in range(batch) if batch < 4096 else ():
            counts = np.diff(starts.reshape(batch, -1)[one])
            other = others.reshape(batch, -1)[one]
            if (counts < 0).any() or counts.sum() != len(other) or (other < 0).any():
                raise IndexError("an index that does not fit the shape")
            line = np.repeat(np.arange(len(counts)), counts)
            row, column = (line, other) if by_row else (other, line)
            block = values.reshape(batch, -1, height, width)[one]
            grid[one][row, column] = block
        return dense

    return fill


_FILL: dict[str, Any] = {
    "coo": _coo,
    "csr": _compressed(True),
    "bsr": _compressed(True),
    "csc": _compressed(False),
    "bsc": _compressed(False),
}


class MetaTensor(LazyTensor):
    """A tensor of the device "meta", which has no values."""

    __slots__ = ("bits",)

    def __init__(self, dtype: str, bits: int, shape: tuple[int, ...]):
        super().__init__(dtype, shape)
        self.bits = bits

    def read(self) -> np.ndarray:
        raise RecordError(
            f"a tensor of shape {list(self.shape)} was saved from the device 'meta' "
            f"and has no values"
        )

    def _bits(self) -> int:
        return self.bits
