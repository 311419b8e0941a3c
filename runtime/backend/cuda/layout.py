"""Channels-last arrays: (N, C, *S) whose channels lie side by side in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend.cuda.kernels import kernel

_TILE = 32
_WORDS = {
    1: "unsigned char",
    2: "unsigned short",
    4: "unsigned",
    8: "long long",
    16: "double2",
}


def is_last(array: Any) -> bool:
    """Whether an array's channels lie side by side, and it is not contiguous."""
    if array.ndim < 3 or array._c_contiguous:
        return False
    turned = array.transpose(0, *range(2, array.ndim), 1)
    return bool(turned._c_contiguous)


def last(array: Any) -> Any:
    """The array, copied where its channels do not lie side by side: (N, C, *S)"""
    import cupy

    turned = array.transpose(0, *range(2, array.ndim), 1)
    if turned._c_contiguous:
        if not array.data.ptr & 15:
            return array
        made = turned.copy()
    elif array._c_contiguous and (made := empty(array.shape, array.dtype)).size:
        n, c = array.shape[:2]
        _turn(array, made, n, c, array.size // (n * c))
        return made
    else:
        made = cupy.ascontiguousarray(turned)
    return made.transpose(0, array.ndim - 1, *range(1, array.ndim - 1))


def contiguous(array: Any) -> Any:
    """The array, copied where its elements do not lie in the order of its axes."""
    import cupy

    if array._c_contiguous:
        return array
    if not array.size or not is_last(array):
        return cupy.ascontiguousarray(array)
    made = cupy.ndarray(array.shape, array.dtype)
    n, c = array.shape[:2]
    _turn(array, made, n, array.size // (n * c), c)
    return made


def _turn(x: Any, y: Any, count: int, rows: int, columns: int) -> None:
    """Write the matrices of x, as they lie in memory, transposed into y."""
    across, down = -(-columns // _TILE), -(-rows // _TILE)
    made = kernel("turned", element=_WORDS[x.dtype.itemsize])
    sizes = map(np.int32, (rows, columns, across, down))
    made((count * across * down,), (_TILE, 8), (x, y, *sizes))


def empty(shape: tuple[int, ...], dtype: Any) -> Any:
    """A channels-last array of shape (N, C, *S)."""
    import cupy

    made = cupy.ndarray((shape[0], *shape[2:], shape[1]), dtype)
    return made.transpose(0, len(shape) - 1, *range(1, len(shape) - 1))


def empty_like(array: Any) -> Any:
    """An array of the same shape, dtype and order, channels last or contiguous."""
    import cupy

    if is_last(array):
        return empty(array.shape, array.dtype)
    return cupy.ndarray(array.shape, array.dtype)
