"""Convolutions whose windows lie side by side, as one product."""

from __future__ import annotations

from math import prod
from typing import Any

from burnish.backend.cuda.layout import contiguous, is_last, last
from burnish.backend.cuda.products import cublaslt


def fits(w: Any) -> bool:
    """Whether windows lie side by side: each element is in one of them."""
    apart = w.kernel == w.stride and not any(map(any, w.pads))
    return apart and prod(w.kernel) > 1 and set(w.dilation) == {1}


def conv(x: Any, weight: Any, w: Any, bias: Any) -> Any:
    """The convolution as one product of the windows; channels-last, or None."""
    import cupy

    n, rank = len(x), len(w.kernel)
    across = is_last(x)  # the order in a window is that in memory
    places, inside = range(2, 2 + 2 * rank, 2), range(3, 3 + 2 * rank, 2)
    order = (*inside, 1) if across else (1, *inside)
    rows = cupy.ascontiguousarray(_cut(x, w).transpose(0, *places, *order))
    own = last(weight).transpose(0, *range(2, 2 + rank), 1) if across else weight
    matrix = contiguous(own).reshape(len(weight), -1)
    y = cublaslt.linear(rows.reshape(n, *w.out, -1), matrix, bias)
    return None if y is None else y.transpose(0, rank + 1, *range(1, rank + 1))


def _cut(x: Any, w: Any) -> Any:
    """x (N, C, *S), each axis of S as two: windows, and places in them; a view."""
    import cupy

    steps = [x.strides[0], x.strides[1]]
    sizes = list(x.shape[:2])
    for p, k, step in zip(w.out, w.kernel, x.strides[2:], strict=True):
        sizes += (p, k)
        steps += (step * k, step)
    return cupy.lib.stride_tricks.as_strided(x, sizes, steps)
