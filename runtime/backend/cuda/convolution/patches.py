"""Convolutions with adjacent, disjoint windows, as one matrix product."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from burnish.backend.cuda.kernels import LONG, kernel
from burnish.backend.cuda.layout import contiguous, is_last, last
from burnish.backend.cuda.products import cublaslt


def fits(w: Any) -> bool:
    """Whether windows tile the axes: each element is in exactly one of them."""
    apart = w.kernel == w.stride and not any(map(any, w.pads))
    return apart and prod(w.kernel) > 1 and set(w.dilation) == {1}


def conv(x: Any, weight: Any, w: Any, bias: Any) -> Any:
    """The convolution as one product of the windows; channels-last, or None."""
    n, rank = len(x), len(w.kernel)
    across = is_last(x)  # the order in a window is that in memory
    rows = _rows(x, w, across)
    own = last(weight).transpose(0, *range(2, 2 + rank), 1) if across else weight
    matrix = contiguous(own).reshape(len(weight), -1)
    y = cublaslt.linear(rows.reshape(n, *w.out, -1), matrix, bias)
    return None if y is None else y.transpose(0, rank + 1, *range(1, rank + 1))


def _rows(x: Any, w: Any, across: bool) -> Any:
    """The windows of x (N, C, *S), the elements of each side by side in memory."""
    import cupy

    rank = len(w.kernel)
    if rank <= 2 and x.size < LONG and (across or x._c_contiguous):
        return _gathered(x, w, across)
    places, inside = range(2, 2 + 2 * rank, 2), range(3, 3 + 2 * rank, 2)
    order = (*inside, 1) if across else (1, *inside)
    return cupy.ascontiguousarray(_cut(x, w).transpose(0, *places, *order))


def _gathered(x: Any, w: Any, across: bool) -> Any:
    """The windows by a kernel, which moves runs of neighbours in packs.

    A window of an array with whole windows only: a rest behind the last is cut off.
    """
    import cupy

    one = len(w.kernel) == 1
    high, wide = (1, *w.kernel) if one else w.kernel
    rows, columns = (1, *w.out) if one else w.out
    sizes = tuple(n * k for n, k in zip(w.out, w.kernel, strict=True))
    if x.shape[2:] != sizes:
        x = x[(slice(None), slice(None), *map(slice, sizes))]
        x = last(x) if across else contiguous(x)
    c = x.shape[1]
    y = cupy.ndarray(x.size, x.dtype)
    channels, run = (1, wide * c) if across else (c, wide)
    ends = run * x.itemsize | x.data.ptr | y.data.ptr
    pack = next(size for size in (16, 8, 4, 2, 1) if not ends & (size - 1))
    run = run * x.itemsize // pack
    size = x.nbytes // pack
    given = map(np.uint32, (size, channels, rows, high, columns, run))
    made = kernel("patches", bytes=pack)
    if size:
        made((-(-size // 256),), (256,), (x, y, *given))
    return y


def _cut(x: Any, w: Any) -> Any:
    """x (N, C, *S), each axis of S as two: windows, and places in them; a view."""
    import cupy

    steps = [x.strides[0], x.strides[1]]
    sizes = list(x.shape[:2])
    for p, k, step in zip(w.out, w.kernel, x.strides[2:], strict=True):
        sizes += (p, k)
        steps += (step * k, step)
    return cupy.lib.stride_tricks.as_strided(x, sizes, steps)
