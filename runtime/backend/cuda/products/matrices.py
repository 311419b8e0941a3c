"""Matrices, and batches of them, as cublasLt describes them: strides in elements."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from burnish.backend.cuda.layout import contiguous


class Matrix(NamedTuple):
    """The layout of a matrix, or of a batch of them, in elements."""

    transposed: bool
    lead: int  # from one row to the next (column, where transposed)
    stride: int  # from one matrix of a batch to the next


def flat(a: Any, b: Any) -> Any:
    """All rows of a as one matrix, where b is one."""
    if b.ndim > 2 or a.ndim == 2:
        return a
    return a.reshape(prod(a.shape[:-1]), a.shape[-1])


def broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    import numpy as np

    return a if a == b else np.broadcast_shapes(a, b)


def laid_out(x: Any, batch: tuple[int, ...]) -> Any:
    """x, copied where its matrices cannot be described or 16 bytes be read at once."""
    import cupy

    if described(x, batch) is None:  # columns side by side are moved as rows are
        x = contiguous(x.mT).mT if x.strides[-2] == x.itemsize else contiguous(x)
    if x.data.ptr % 16:
        x = x.copy()
    if described(x, batch) is None:
        x = cupy.ascontiguousarray(cupy.broadcast_to(x, (*batch, *x.shape[-2:])))
    return x


def described(x: Any, batch: tuple[int, ...]) -> Matrix | None:
    size = x.itemsize
    rows, columns = x.shape[-2:]
    down, across = x.strides[-2] // size, x.strides[-1] // size
    if (across == 1 or columns == 1) and (down >= columns or rows == 1):
        transposed, lead = False, columns if rows == 1 else down
    elif (down == 1 or rows == 1) and (across >= rows or columns == 1):
        transposed, lead = True, rows if columns == 1 else across
    else:
        return None
    stride = _batch_stride(x, batch)
    return None if stride is None else Matrix(transposed, lead, stride)


def _batch_stride(x: Any, batch: tuple[int, ...]) -> int | None:
    """How far apart the matrices of a batch are; None where that changes."""
    ahead = len(batch) - (x.ndim - 2)
    if not batch or x.ndim == 2 or prod(x.shape[:-2]) == 1:
        return 0
    stride = expected = None
    for axis in reversed(range(len(batch))):
        own = axis - ahead
        if batch[axis] == 1:
            continue
        if own < 0 or x.shape[own] == 1:
            return None  # some axes are repeated and others are not
        here = x.strides[own] // x.itemsize
        if expected is not None and here != expected:
            return None
        if stride is None:
            stride = here
        expected = here * batch[axis]
    return stride or 0
