"""Kernels that slide a window over the spatial axes of (N, C, *S).

Each function is given an array and returns a function of arrays alike.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from burnish.backend.bfloat16 import is_bfloat16
from burnish.backend.cuda.calls import Run
from burnish.backend.cuda.kernels import ELEMENTS, LONG, bound, by_value, passed, wide
from burnish.backend.cuda.norms.rows import contiguous

_THREADS = 256


def takes(x: Any) -> bool:
    """Whether kernels take this array: floats, and not empty."""
    return (x.dtype.kind == "f" or is_bfloat16(x)) and x.size > 0


def columns(x: Any, sizes: Any, w: Any, *, together: bool) -> Run:
    """What makes of x (N, C, *S) every place's view: (N, C * prod(K), prod(P))

    together: (C * prod(K), N * prod(P)) instead.
    """
    n, c, depth, places = len(x), x.shape[1], prod(w.kernel), prod(w.out)
    shape = (c * depth, n * places) if together else (n, c * depth, places)
    apart = (places, n * places) if together else (c * depth * places, places)
    return _prepared("columns", x, shape, sizes, w, (c, *apart))


def spread_columns(cols: Any, shape: tuple[int, ...], w: Any) -> Run:
    """The adjoint of `columns`: (N, C * prod(K), prod(P)) -> shape (N, C, *S)"""
    places = prod(w.out)
    apart = (cols.shape[1] * places, places)
    return _prepared("spread_columns", cols, shape, shape[2:], w, (shape[1], *apart))


def reduced(form: str, x: Any, w: Any) -> Run:
    """The "sum" or the "max" under each window: (N, C, *S) -> (N, C, *P)"""
    return _prepared(form, x, (*x.shape[:2], *w.out), x.shape[2:], w, (1, 1, 1))


def spread(x: Any, sizes: tuple[int, ...], w: Any) -> Run:
    """The adjoint of the sum: (N, C, *P) -> (N, C, *sizes)"""
    return _prepared("spread", x, (*x.shape[:2], *sizes), sizes, w, (1, 1, 1))


def fits(*shapes: tuple[int, ...]) -> bool:
    """Whether a kernel has enough blocks for arrays of these shapes."""
    return all(prod(shape) < LONG * _THREADS for shape in shapes)


def _prepared(
    form: str, x: Any, shape: tuple[int, ...], sizes: Any, w: Any, layout: Any
) -> Run:
    """A function of arrays like x; its results have this shape."""
    from cupy import ndarray

    dtype, size = x.dtype, prod(shape)
    if not size:
        return lambda x: ndarray(shape, dtype)
    is_long = max(x.size, size) >= NUMBERED
    made = bound(
        "windows",
        form=form,
        element=ELEMENTS[dtype.name],
        wide=wide(dtype),
        index="long long" if is_long else "int",
        rank=len(w.kernel),
    )
    geometry = described(sizes, w, layout, is_long)
    blocks, threads = (-(-size // _THREADS),), (_THREADS,)
    numbers = *passed(size), geometry

    def run(x: Any) -> Any:
        y = ndarray(shape, dtype)
        made(blocks, threads, (contiguous(x), y, *numbers))
        return y

    return run


def described(sizes: Any, w: Any, layout: Any, is_long: bool) -> Any:
    """How a window moves over `sizes`, as kernels take it.

    layout: channels, and how far images and rows of columns are apart.
    """
    channels, *apart = layout
    divisors = *sizes, *w.out, *w.kernel, *w.stride, channels, prod(w.kernel)
    numbers = [part for each in divisors for part in _divisor(max(each, 1))]
    numbers += [*w.dilation, *(before for before, _ in w.pads), *apart]
    whole = np.array(numbers, np.int64)
    return by_value(whole if is_long else whole.astype(np.int32))


NUMBERED = (1 << 31) - _THREADS
"""Elements that 32 bits count."""


def _divisor(by: int) -> tuple[int, int, int]:
    """A number and the factor and shift that divide by it: n < 2 ** 31, in 32 bits.

    T. Granlund, P. L. Montgomery: Division by invariant integers using multiplication.
    """
    shift = (by - 1).bit_length()
    return by, ((((1 << shift) - by) << 32) // by + 1) & _BITS, shift


_BITS = (1 << 32) - 1
