"""Launching kernels that slide a window over the spatial axes of (N, C, *S)."""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

from burnish.backend.bfloat16 import is_bfloat16
from burnish.backend.cuda.kernels import ELEMENTS, LONG, by_value, kernel, wide
from burnish.backend.cuda.norms.rows import contiguous

_THREADS = 256


def takes(x: Any) -> bool:
    """Whether kernels take this array: floats, and not empty."""
    return (x.dtype.kind == "f" or is_bfloat16(x)) and x.size > 0


def columns(x: Any, sizes: Any, w: Any, *, together: bool) -> Any:
    """x (N, C, *S) as every place's view: (N, C * prod(K), prod(P))

    together: (C * prod(K), N, prod(P)) instead.
    """
    import cupy

    n, c, depth, places = len(x), x.shape[1], prod(w.kernel), prod(w.out)
    shape = (c * depth, n, places) if together else (n, c * depth, places)
    y = cupy.ndarray(shape, x.dtype)
    apart = (places, n * places) if together else (c * depth * places, places)
    _launch("columns", x, y, y.size, sizes, w, (c, *apart))
    return y


def spread_columns(cols: Any, shape: tuple[int, ...], w: Any) -> Any:
    """The adjoint of `columns`: (N, C * prod(K), prod(P)) -> shape (N, C, *S)"""
    import cupy

    y, places = cupy.ndarray(shape, cols.dtype), prod(w.out)
    apart = (cols.shape[1] * places, places)
    _launch("spread_columns", cols, y, y.size, shape[2:], w, (shape[1], *apart))
    return y


def reduced(form: str, x: Any, w: Any) -> Any:
    """The "sum" or the "max" under each window: (N, C, *S) -> (N, C, *P)"""
    import cupy

    y = cupy.ndarray((*x.shape[:2], *w.out), x.dtype)
    _launch(form, x, y, y.size, x.shape[2:], w, (1, 1, 1))
    return y


def spread(x: Any, sizes: tuple[int, ...], w: Any) -> Any:
    """The adjoint of the sum: (N, C, *P) -> (N, C, *sizes)"""
    import cupy

    y = cupy.ndarray((*x.shape[:2], *sizes), x.dtype)
    _launch("spread", x, y, y.size, sizes, w, (1, 1, 1))
    return y


def fits(*shapes: tuple[int, ...]) -> bool:
    """Whether a kernel has enough blocks for arrays of these shapes."""
    return all(prod(shape) < LONG * _THREADS for shape in shapes)


def _launch(
    form: str, x: Any, y: Any, size: int, sizes: Any, w: Any, layout: Any
) -> None:
    if size:
        is_long = max(x.size, y.size) >= _NUMBERED
        made, geometry = _prepared(form, x.dtype, is_long, tuple(sizes), w, layout)
        blocks = (-(-size // _THREADS),)
        made(blocks, (_THREADS,), (contiguous(x), y, size, geometry))


_NUMBERED = (1 << 31) - _THREADS  # elements that 32 bits count


@functools.lru_cache(maxsize=4096)
def _prepared(
    form: str, dtype: Any, is_long: bool, sizes: Any, w: Any, layout: Any
) -> Any:
    """The kernel, and its geometry argument."""
    channels, *apart = layout
    divisors = *sizes, *w.out, *w.kernel, *w.stride, channels, prod(w.kernel)
    numbers = [part for each in divisors for part in _divisor(max(each, 1))]
    numbers += [*w.dilation, *(before for before, _ in w.pads), *apart]
    made = kernel(
        "windows",
        form=form,
        element=ELEMENTS[dtype.name],
        wide=wide(dtype),
        index="long long" if is_long else "int",
        rank=len(w.kernel),
    )
    whole = np.array(numbers, np.int64)
    return made, by_value(whole if is_long else whole.astype(np.int32))


def _divisor(by: int) -> tuple[int, int, int]:
    """A number and the factor and shift that divide by it: n < 2 ** 31, in 32 bits.

    T. Granlund, P. L. Montgomery: Division by invariant integers using multiplication.
    """
    shift = (by - 1).bit_length()
    return by, ((((1 << shift) - by) << 32) // by + 1) & _BITS, shift


_BITS = (1 << 32) - 1
