"""Channels-last arrays: (N, C, *S) with contiguous channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burnish.backend.cuda.calls import Run
from burnish.backend.cuda.kernels import LONG, bound, kernel, passed

_TILE = 32
_FEW = 8
"""Rows, or columns, that a thread has neighbours of in its registers."""

_NARROW = 16
"""Fewer rows or columns fill less than half of a tile."""

_WORDS = {
    1: "unsigned char",
    2: "unsigned short",
    4: "unsigned",
    8: "long long",
    16: "double2",
}


def is_last(array: Any) -> bool:
    """Whether an array's channels are contiguous, and the array is not."""
    if array.ndim < 3 or array._c_contiguous:
        return False
    turned = array.transpose(0, *range(2, array.ndim), 1)
    return bool(turned._c_contiguous)


def last(array: Any) -> Any:
    """The array itself if its channels are contiguous, else a copy: (N, C, *S)"""
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
    """The array itself if it is in C order, else a copy."""
    import cupy

    if array._c_contiguous:
        return array
    if _in_words(array):
        return _gathered(array)
    if not array.size or not is_last(array):
        return cupy.ascontiguousarray(array)
    made = cupy.ndarray(array.shape, array.dtype)
    n, c = array.shape[:2]
    _turn(array, made, n, array.size // (n * c), c)
    return made


def _in_words(array: Any) -> bool:
    """Whether an array of up to four axes has rows to read 16 bytes at a time."""
    if not 2 <= array.ndim <= 4 or not array.size or array.nbytes >= LONG:
        return False
    *steps, last = array.strides
    ends = array.data.ptr | array.shape[-1] * array.itemsize
    for step in steps:
        ends |= step
    return bool(last == array.itemsize and not ends & 15)


def prepared_reshape(array: Any, shape: tuple[int, ...]) -> Run:
    """How to give arrays alike a shape of as many elements, all of them known."""
    from cupy import ndarray

    if array._c_contiguous or not array.size:
        return lambda array: array.reshape(shape)
    view = array.view()
    try:
        view.shape = shape
    except (AttributeError, ValueError):  # it is no view
        if not _in_words(array):
            return lambda array: contiguous(array).reshape(shape)
    else:
        return lambda array: array.reshape(shape)
    dtype = array.dtype
    launch = _gather(array)

    def run(array: Any) -> Any:
        made = ndarray(shape, dtype)
        launch(array, made)
        return made

    return run


def _gathered(array: Any) -> Any:
    import cupy

    made = cupy.ndarray(array.shape, array.dtype)
    _gather(array)(array, made)
    return made


def _gather(array: Any) -> Callable[[Any, Any], None]:
    """What writes rows of an array, and of any alike, one after another."""
    lead = [1] * (4 - array.ndim)
    n1, n2, n3 = [*lead, *array.shape][1:]
    size = array.nbytes // 16
    sizes = map(np.int32, (size, n1, n2, n3 * array.itemsize // 16))
    steps = (*(0 for _ in lead), *(step // 16 for step in array.strides[:-1]))
    run, blocks, ends = bound("gathered"), (-(-size // 256),), passed(*sizes, *steps)
    return lambda array, made: run(blocks, (256,), (array, made, *ends))


def _turn(x: Any, y: Any, count: int, rows: int, columns: int) -> None:
    """Write the matrices of x, in their memory layout, transposed into y."""
    few, many = min(rows, columns), max(rows, columns)
    if few <= _FEW and x.size < LONG:
        size = x.dtype.itemsize
        packed = many * size % 16 == 0 and not (x.data.ptr | y.data.ptr) & 15
        width = 16 // size if packed else 1
        made = kernel(
            "few_turned",
            element=_WORDS[size],
            few=few,
            width=width,
            back=columns < rows,
        )
        packs = many // width
        given = (x, y, np.uint32(count * packs), np.uint32(packs))
        made((-(-count * packs // 256),), (256,), given)
        return
    across, down = -(-columns // _TILE), -(-rows // _TILE)
    size = count * rows * columns
    narrow = min(rows, columns) < _NARROW and -(-size // 256) < LONG
    made = kernel("turned", element=_WORDS[x.dtype.itemsize], narrow=narrow)
    if narrow:
        numbers = map(np.int32, (rows, columns))
        made((-(-size // 256),), (256,), (x, y, *numbers, size))
        return
    sizes = map(np.int32, (rows, columns, across, down))
    made((count * across * down,), (_TILE, 8), (x, y, *sizes))


def empty(shape: tuple[int, ...], dtype: Any) -> Any:
    """A channels-last array of shape (N, C, *S)."""
    import cupy

    made = cupy.ndarray((shape[0], *shape[2:], shape[1]), dtype)
    return made.transpose(0, len(shape) - 1, *range(1, len(shape) - 1))


def joined(arrays: Any) -> Any:
    """Arrays (N, C, *S), one after another along C, in one that is channels-last."""
    count = sum(array.shape[1] for array in arrays)
    first = arrays[0]
    made = empty((len(first), count, *first.shape[2:]), first.dtype)
    start, size = made.data.ptr, first.dtype.itemsize
    for array in map(last, arrays):
        width = array.shape[1] * size
        ends = width | count * size | array.data.ptr | start
        word = next(n for n in sorted(_WORDS, reverse=True) if not ends & (n - 1))
        run = kernel("spliced", element=_WORDS[word])
        words = array.nbytes // word
        sizes = words, np.int32(width // word), np.int32(count * size // word)
        to = np.uintp(start)
        if words:
            run((-(-words // 256),), (256,), (array, to, *sizes))
        start += width
    return made


def prepared_rows(ids: Any, table: Any) -> Run | None:
    """How to take rows of a table (rows, n) by number: (*ids.shape, n), or None.

    ids: int32 or int64; outside of the table they wrap.
    """
    from cupy import ndarray

    if ids.dtype.char not in "il" or not ids.size or table.ndim != 2 or not table.size:
        return None
    width = table.shape[1] * table.itemsize
    if not table._c_contiguous or (width | table.data.ptr) & 15 or ids.size >= LONG:
        return None
    index = "int" if ids.dtype.itemsize == 4 else "long long"
    words = ids.size * width // 16
    blocks = -(-words // 256)
    if blocks >= LONG:
        return None
    code = bound("taken", element=_WORDS[16], index=index)
    sizes = passed(words, len(table), np.int32(width // 16))
    shape, dtype = (*ids.shape, table.shape[1]), table.dtype

    def run(ids: Any, table: Any) -> Any:
        y = ndarray(shape, dtype)
        code((blocks,), (256,), (table, contiguous(ids), y, *sizes))
        return y

    return run


def empty_like(array: Any) -> Any:
    """An array of the same shape, dtype and order, channels last or contiguous."""
    import cupy

    if is_last(array):
        return empty(array.shape, array.dtype)
    return cupy.ndarray(array.shape, array.dtype)
