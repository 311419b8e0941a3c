"""Stream a large array as bytes in C order, block by block.

Arrays of model files are views of a memory map, often transposed. Pages that were read
count as this process's memory until they are given back, so they are given back as soon
as they are copied.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np

from burnish.serialize.elements import encode

BLOCK = 16 << 20


def blocks(array: np.ndarray, dtype: np.dtype[Any]) -> Iterator[memoryview]:
    """The elements converted to `dtype`, as little-endian bytes."""
    if array.nbytes <= BLOCK or array.ndim == 0:
        yield encode(array.astype(dtype, copy=False), "weights")
        return
    if array.flags.c_contiguous:
        array = array.reshape(-1)
    rows = max(1, BLOCK // (array[:1].size * dtype.itemsize))
    rows += -rows % 8  # elements narrower than a byte fill whole bytes
    for start in range(0, len(array), rows):
        yield encode(_copied(array[start : start + rows], dtype), "weights")


def _copied(part: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """The part in C order; its pages are read in the order of the file."""
    out = np.empty(part.shape, dtype)
    axis = int(np.argmax(np.abs(part.strides)))
    ways = range(0, part.shape[axis], max(1, BLOCK // _reach(part, axis)))
    for start in ways:
        key = (slice(None),) * axis + (slice(start, start + ways.step),)
        out[key] = part[key]
        give_back(part[key])
    return out


def _reach(part: np.ndarray, axis: int) -> int:
    """How many bytes of the file one step along the axis passes over."""
    return max(abs(part.strides[axis]), part.itemsize)


def give_back(view: np.ndarray) -> None:
    """Take the pages below a view of a read-only memory map out of resident memory."""
    base: Any = view
    while isinstance(base, np.ndarray):
        base = base.base
    mapped = base.obj if isinstance(base, memoryview) else base
    if not isinstance(mapped, mmap.mmap) or not hasattr(mmap, "MADV_DONTNEED"):
        return
    whole = np.frombuffer(mapped, np.uint8)
    if whole.flags.writeable:
        return
    low, high = np.lib.array_utils.byte_bounds(view)
    start = (low - whole.ctypes.data) // mmap.PAGESIZE * mmap.PAGESIZE
    mapped.madvise(mmap.MADV_DONTNEED, start, high - whole.ctypes.data - start)
