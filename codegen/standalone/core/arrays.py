"""The base class of tensors, and their only device: memory, where NumPy computes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

Array = np.ndarray
Size = int


class Device:
    """Memory, where NumPy computes."""

    kind = "cpu"
    xp = np
    float_dtype = np.dtype("float32")
    int_dtype = np.dtype("int64")

    def __init__(self, name: Any = "cpu"):
        """Any name of it."""

    @classmethod
    def of(cls, array: Any) -> Device:
        return CPU

    def inner(self) -> Device:
        return self

    def put(self, array: Any, dtype: Any = None) -> Any:
        """As a NumPy array; strings are objects, bytes are UTF-8."""
        held = np.asarray(array, dtype)
        if held.dtype.kind == "S":
            held = np.char.decode(held)
        return held.astype(object) if held.dtype.kind in "UT" else held


CPU = Device()


class Variable:
    """An array with operators."""

    __slots__ = ("data",)
    device = CPU
    node = None
    index = 0

    data: Any

    @classmethod
    def wrap(
        cls, data: Any, device: Any = None, node: Any = None, index: int = 0
    ) -> Self:
        """A tensor around `data` as it is; no conversion, no copy."""
        self = object.__new__(cls.result_type())
        self.data = data
        return self

    @classmethod
    def result_type(cls) -> Any:
        """The class that operators on this class return."""
        return cls

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def dtype(self) -> Any:
        return self.data.dtype


def on_host(array: Any) -> Any:
    """An array where it is."""
    return np.asarray(array)


def as_indices(array: Any) -> Any:
    """Whole numbers no wider than an address, which has 32 bits in a browser."""
    dtype = getattr(array, "dtype", None)
    if dtype is None or dtype.kind not in "iu" or dtype.itemsize <= np.intp().itemsize:
        return array
    return array.astype(np.intp)


def as_places(array: Any) -> Any:
    """Addresses as operators give them: int64, also where one has 32 bits."""
    return array.astype(np.int64, copy=False)
