"""NumPy's own format of one array (.npy), out of files: nothing is made but a view."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
from numpy.lib import format as npy

from burnish._files.shown import shown
from burnish.errors import RecordError

_LONGEST = 20_000  # bytes of an array's header; NumPy reads no longer ones
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def view(data: Any, where: str) -> np.ndarray:
    """The array in the bytes of a .npy file, sharing their memory.

    Raises RecordError for pickled objects, and where the bytes are not as many as the
    header says.
    """
    raw = memoryview(data)
    head = io.BytesIO(raw[:_LONGEST])
    try:
        shape, fortran, dtype = _HEADERS[npy.read_magic(head)](head)
    except Exception:  # NumPy's parser raises many kinds for a damaged header
        raise RecordError(f"{where}: expected an array of numbers") from None
    if dtype.hasobject:
        raise RecordError(f"{where}: expected numbers, got pickled objects")
    size = math.prod(shape) * dtype.itemsize
    fits = min(shape, default=0) >= 0 and dtype.itemsize > 0
    if not fits or len(raw) - head.tell() != size:
        raise RecordError(f"{where}: expected one array of {shown(list(shape))}")
    flat = np.frombuffer(raw[head.tell() :], dtype)
    return flat.reshape(shape, order="F" if fortran else "C")
