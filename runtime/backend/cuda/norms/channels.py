"""Launching kernels that standardize each channel of (N, C, *S), and their gradient."""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

from burnish.backend.cuda.kernels import ELEMENTS, LONG, kernel, wide
from burnish.backend.cuda.layout import empty_like, is_last, last
from burnish.backend.cuda.norms.rows import contiguous, takes

_BLOCKS, _THREADS = 1024, 256


def batch_norm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    """(x standardized by its own statistics, mean, variance); None for no kernel.

    weight, bias: (C,), or None.
    """
    import cupy

    given = [a for a in (x, weight, bias) if a is not None]
    if x.ndim < 2 or not takes(*given) or x.size >= LONG:
        return None
    x = x if is_last(x) else contiguous(x)
    weight, bias = contiguous(weight), contiguous(bias)
    shape = _shape(x)
    c = shape[1]
    found = cupy.ndarray((2, c), x.dtype)
    own = (x, x, x, x if weight is None else weight, x if bias is None else bias)
    factors = _factors("spread", x, x, shape, own, found, eps, weight, bias)
    y = empty_like(x)
    _affine("spread", x, x, factors, y, shape)
    return y, found[0], found[1]


def batch_norm_gradient(
    g: Any, x: Any, mean: Any, var: Any, weight: Any, eps: float
) -> Any:
    """The gradients of x, weight and bias from that of the result, or None."""
    import cupy

    given = [a for a in (x, g, mean, var, weight) if a is not None]
    if not takes(*given) or x.size >= LONG or g.shape != x.shape:
        return None
    if is_last(g) or is_last(x):
        x, g = last(x), last(g)
    else:
        x, g = contiguous(x), contiguous(g)
    shape = _shape(x)
    found = cupy.ndarray((2, shape[1]), x.dtype)
    mean, var, weight = contiguous(mean), contiguous(var), contiguous(weight)
    own = (x, mean, var, x if weight is None else weight, x)
    factors = _factors("slope", x, g, shape, own, found, eps, weight, None)
    out = empty_like(x)
    _affine("slope", x, g, factors, out, shape)
    return out, found[0], found[1]


def _shape(x: Any) -> tuple[int, int, int]:
    """x as (lead, C, inner) in memory; inner is 1 where channels lie side by side."""
    n, c = x.shape[:2]
    places = prod(x.shape[2:])
    return (n, c, places) if x._c_contiguous else (n * places, c, 1)


def _factors(
    form: str,
    x: Any,
    g: Any,
    shape: tuple[int, int, int],
    own: tuple[Any, ...],
    found: Any,
    eps: float,
    weight: Any,
    bias: Any,
) -> Any:
    """Each channel's factors; the two rows of `found` get what was summed.

    own: x, the mean, the variance, the weight and the bias; x for what is not there.
    """
    import cupy

    lead, c, inner = shape
    aligned = not (x.data.ptr | g.data.ptr) & 15
    pairs, factors, blocks, parts = _prepared(
        form, x.dtype, shape, aligned, weight is not None, bias is not None
    )
    number = "f8" if x.dtype.char == "d" else "f4"
    sums = cupy.ndarray((2, parts, c), number)
    pairs((blocks, parts), (_THREADS,), (x, g, own[1], sums, *_ints(lead, c, inner)))
    made = cupy.ndarray((4, c), number)
    counts = lead * inner, *_ints(parts, c, inner)
    factors((-(-c // 32),), (32, 32), (sums, *own, made, found, *counts, float(eps)))
    return made


def _ints(*numbers: int) -> tuple[Any, ...]:
    return tuple(map(np.int32, numbers))


@functools.lru_cache(maxsize=4096)
def _prepared(
    form: str,
    dtype: Any,
    shape: tuple[int, int, int],
    aligned: bool,
    weighted: bool,
    biased: bool,
) -> Any:
    """Both kernels, the blocks across channels, and the parts of the places."""
    lead, c, inner = shape
    across, width = inner == 1, 16 // dtype.itemsize
    width = width if across and aligned and c % width == 0 else 1
    lanes = 32 if across else 1
    while lanes > 1 and lanes // 2 * width >= c:
        lanes //= 2
    types = {"element": ELEMENTS[dtype.name], "wide": wide(dtype), "form": form}
    pairs = kernel("channel_pairs", width=width, lanes=lanes, across=across, **types)
    factors = kernel("channel_factors", weighted=weighted, biased=biased, **types)
    blocks = -(-c // (lanes * width)) if across else c
    rows = lead * inner // (_THREADS // lanes)
    return pairs, factors, blocks, max(1, min(_BLOCKS // blocks, rows // 8))


def _affine(
    form: str, x: Any, g: Any, factors: Any, y: Any, shape: tuple[int, int, int]
) -> None:
    _, c, inner = shape
    across, width = inner == 1, 16 // x.dtype.itemsize
    aligned = not (x.data.ptr | g.data.ptr | y.data.ptr) & 15
    width = width if aligned and (c if across else inner) % width == 0 else 1
    types = {"element": ELEMENTS[x.dtype.name], "wide": wide(x.dtype), "form": form}
    made = kernel("channel_affine", width=width, across=across, **types)
    blocks = -(-x.size // (_THREADS * width))
    made((blocks,), (_THREADS,), (x, g, factors, y, x.size, *_ints(c, inner)))
