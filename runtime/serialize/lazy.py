"""Tensors of a file before their values are read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


class LazyTensor:
    """A tensor that a file holds: what it is at once, its values by `read()`.

    dtype is NumPy's or ml_dtypes' name of it ("float32", "bfloat16", "qint8").
    """

    __slots__ = ("dtype", "shape")
    is_quantized = False  #: whether `read` computes the values from integers

    dtype: str
    shape: tuple[int, ...]

    def __init__(self, dtype: str, shape: tuple[int, ...]):
        self.dtype = dtype
        self.shape = shape

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of all elements; what shares a storage counts each time."""
        return -(-self.size * self._bits() // 8)

    def read(self) -> np.ndarray:
        """The values, read-only; a view of the mapped file where the layout allows.

        bfloat16 without ml_dtypes is widened to float32, which is exact. Raises
        RecordError when the file is damaged there.
        """
        raise NotImplementedError

    @property
    def memory(self) -> object:
        """The storage it is a view of: the same object for all its tensors."""
        return self

    def shares_memory(self, other: LazyTensor) -> bool:
        """Whether both are views of one storage of one file."""
        return self.memory is other.memory

    def _bits(self) -> int:
        raise NotImplementedError

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.read(), dtype, copy=copy)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape}, {self.dtype})"
