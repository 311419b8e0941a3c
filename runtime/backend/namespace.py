"""NumPy or CuPy, asked of the arrays themselves. The only place that knows CuPy."""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

import numpy as np

from burnish.backend import symbols
from burnish.errors import DeviceError

Array: TypeAlias = np.ndarray[Any, Any]
"""A `numpy.ndarray` or a `cupy.ndarray`; shapes are said in the docstrings."""


def namespace(*arrays: Any) -> Any:
    """The library, `numpy` or `cupy`, of the first array among the arguments.

    Python numbers and None are passed over; with no array at all it is NumPy. Symbols
    of a formula that is being written down have a library of their own.
    """
    for array in arrays:
        if isinstance(array, np.ndarray):
            return np
        if (cupy := sys.modules.get("cupy")) and isinstance(array, cupy.ndarray):
            return cupy
        if type(array) is symbols.Symbol:
            return symbols.library
    return np


def library(kind: str) -> Any:
    """The array library of a device kind: "cpu" -> numpy, "cuda" -> cupy.

    Raises DeviceError when CuPy is missing or finds no GPU.
    """
    if kind == "cpu":
        return np
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
    return cupy


def on_host(array: Any) -> Any:
    """The same values as a NumPy array; copies only what lives on a GPU."""
    return np.asarray(array) if namespace(array) is np else array.get()
