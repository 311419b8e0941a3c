"""Pickled NumPy arrays and dtypes; only plain numbers are known."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from burnish._files.budget import Budget
from burnish._files.shown import shown
from burnish.errors import RecordError
from burnish.serialize.lazy import LazyTensor
from burnish.serialize.pytorch.records import Refused
from burnish.serialize.pytorch.storage import sizes

_LONGEST = 64  # characters of a dtype


class PickledType:
    """A pickled `numpy.dtype`; only plain numbers are known."""

    __slots__ = ("dtype", "text")

    def __init__(self, text: Any):
        if not isinstance(text, str | bytes) or len(text) > _LONGEST:
            raise Refused("a dtype that is not a short text")
        if isinstance(text, bytes):
            text = text.decode("ascii", "replace")
        self.text = text[:20]
        plain = re.fullmatch(r"[|<>=]?[biufc]\d{1,2}", text, re.ASCII)
        self.dtype: np.dtype[Any] | None = None
        if plain:
            self.dtype = np.dtype(text)

    def build(self, machine: Any, state: Any) -> None:
        """State: version, byte order, and parts that plain numbers have not."""
        order: Any = state[1]
        order = order.decode("ascii") if isinstance(order, bytes) else order
        if self.dtype is not None and order in ("<", ">"):
            self.dtype = self.dtype.newbyteorder(order)


class PickledArray(LazyTensor):
    """A pickled `numpy.ndarray`, or a scalar's bytes."""

    __slots__ = ("data", "fortran", "kind")

    def __init__(self) -> None:
        super().__init__("object", ())
        self.kind: PickledType | None = None
        self.data: Any = b""
        self.fortran = False

    def build(self, machine: Any, state: Any) -> None:
        """State: version, shape, dtype, whether in Fortran order, bytes."""
        _, shape, kind, fortran, data = state
        shape = sizes(shape, "a shape")
        self.fill(machine.budget, shape, kind, data, fortran is True)

    def fill(
        self,
        budget: Budget,
        shape: tuple[int, ...],
        kind: Any,
        data: Any,
        fortran: bool = False,
    ) -> None:
        if not isinstance(kind, PickledType):
            raise Refused("an array without a dtype")
        self.kind, self.shape, self.fortran = kind, shape, fortran
        if kind.dtype is None:
            self.dtype = kind.text
            return
        if not isinstance(data, str | bytes | bytearray):
            raise Refused("an array without bytes")
        if len(data) != math.prod(shape) * kind.dtype.itemsize:
            raise Refused(f"{len(data)} bytes for {kind.text} {shown(list(shape))}")
        if isinstance(data, str):  # protocol 2 has no bytes
            budget.take(len(data))
            data = data.encode("latin-1")
        self.dtype, self.data = kind.dtype.name, data

    def read(self) -> np.ndarray:
        if self.kind is None or self.kind.dtype is None:
            raise RecordError(
                f"a NumPy array of {self.kind.text if self.kind else 'nothing'!r} "
                f"is not plain numbers and is not read"
            )
        flat = np.frombuffer(self.data, self.kind.dtype)
        flat = flat.astype(flat.dtype.newbyteorder("="), copy=False)
        array = flat.reshape(self.shape, order="F" if self.fortran else "C")
        array.flags.writeable = False
        return array

    def _bits(self) -> int:
        return 8 * self.kind.dtype.itemsize if self.kind and self.kind.dtype else 0
