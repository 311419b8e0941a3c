"""The array library of arrays: NumPy or CuPy. The only module that imports CuPy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from burnish.backend import installed, symbols
from burnish.errors import DeviceError

Array: TypeAlias = np.ndarray[Any, Any]
"""A `numpy.ndarray` or a `cupy.ndarray`; docstrings give the shapes."""


def namespace(*arrays: Any) -> Any:
    """The library, such as `numpy` or `cupy`, of the first array among the arguments.

    Python numbers and None are passed over; with no array at all it is NumPy. Symbols
    of a formula that is being written down have a library of their own.
    """
    for array in arrays:
        if isinstance(array, np.ndarray):
            return np
        if (cupy := sys.modules.get("cupy")) and isinstance(array, cupy.ndarray):
            if at_first_cupy:
                _begin()
            return cupy
        if type(array) is symbols.Symbol:
            return symbols.library
        for xp in installed.loaded.values():
            if isinstance(array, xp.ndarray):
                return xp
    return np


at_first_cupy: list[Callable[[], object]] = []
"""What is done once, when a device or an array of CuPy is first met."""


def _begin() -> None:
    for each in at_first_cupy:  # an import: other threads wait for its end as well
        each()
    at_first_cupy.clear()


def as_indices(array: Any) -> Any:
    """Whole numbers as `take` and `bincount` want them: no wider than an address.

    An address has 32 bits in a browser, where both refuse numbers of 64. Python's own
    numbers and lists are as they are.
    """
    dtype = getattr(array, "dtype", None)
    if dtype is None or dtype.kind not in "iu" or dtype.itemsize <= _ADDRESS:
        return array
    return array.astype(f"i{_ADDRESS}")


def as_places(array: Any) -> Any:
    """Addresses as operators give them: int64, also where one has 32 bits."""
    return array.astype(np.int64, copy=False)


_ADDRESS = np.dtype(np.intp).itemsize


def library(kind: str) -> Any:
    """The array library of a device kind: "cpu" -> numpy, "cuda" -> cupy.

    Raises DeviceError when CuPy is missing or finds no GPU, and when the library that a
    package brings for another kind cannot be imported.
    """
    if kind == "cpu":
        return np
    if kind != "cuda":
        return installed.load(kind)
    try:
        import cupy
    except ImportError:
        raise DeviceError(
            "device cuda: CuPy is not installed; pip install 'burnish[cuda13]'"
        ) from None
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        count = 0
    if count == 0:
        raise DeviceError("device cuda: CuPy is installed but finds no GPU")
    _begin()
    return cupy


def on_host(array: Any) -> Any:
    """The same values as a NumPy array; copies only what lives elsewhere."""
    xp = namespace(array)
    return np.asarray(array) if xp is np else xp.asnumpy(array)
