"""A sum and the norm of its rows in one kernel, each array of a dtype of its own."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from burnish.backend.cuda.calls import Run
from burnish.backend.cuda.elementwise.fused import repeated
from burnish.backend.cuda.kernels import ELEMENTS, LONG, kernel, passed
from burnish.backend.cuda.norms.rows import contiguous

_MOST = 32  # numbers of a thread, which are in its registers
_THREADS = 128


def prepared_norm(
    x: Any, weight: Any, bias: Any, n: int, eps: float, center: bool
) -> Run | None:
    """How to standardize rows of n last elements; None where no kernel does it.

    weight and bias have n elements and x's dtype, or are None.
    """
    from cupy import ndarray

    shape, dtype = x.shape, x.dtype
    given = [a for a in (weight, bias) if a is not None]
    if dtype.char not in "eEf" or not x.size:
        return None
    if any(a.dtype != dtype or a.size != n for a in given):
        return None
    held = [a for a in (x, *given) if a._c_contiguous]
    aligned = not any(a.data.ptr & 31 for a in held)
    form = (center, weight is not None, bias is not None)
    types = (dtype.name, "", dtype.name)
    made = _prepared(n, x.size // n, types, dtype, None, None, aligned, form)
    if made is None:
        return None
    code, blocks, threads = made
    launch = code.kernel  # the current GPU's, as `kernels.bound` has it
    rows = np.uint32(x.size // n)
    sizes = passed(rows, rows, np.float32(eps))
    tidy = len(held) == 1 + len(given)

    def run(x: Any, weight: Any = None, bias: Any = None) -> Any:
        if not tidy:
            x, weight, bias = map(contiguous, (x, weight, bias))
        y = ndarray(shape, dtype)
        weight = x if weight is None else weight
        launch(
            blocks,
            threads,
            (x, x, weight, x if bias is None else bias, y, y, y, *sizes),
        )
        return y

    return run


def add_norm(
    x: Any,
    z: Any,
    weight: Any,
    bias: Any,
    eps: float,
    *,
    center: bool,
    dtype: np.dtype[Any],
    kept: np.dtype[Any] | None,
    half: np.dtype[Any] | None = None,
) -> Any:
    """(x + z, its rows standardized in `dtype`), or None where no kernel does it.

    x (..., n); z broadcasts to it, whole rows of it, or is None; weight and bias (n,)
    of one dtype, or None. kept: the dtype of the sum; None where nobody asks for it.
    half: a dtype that the result is rounded to as well, in a third array.
    """
    import cupy

    given = [a for a in (weight, bias) if a is not None]
    n = x.shape[-1]
    arrays = [a for a in (x, z, *given) if a is not None]
    if any(a.dtype.char not in "eEf" for a in arrays) or not x.size:
        return None
    if any(a.shape != (n,) or a.dtype != given[0].dtype for a in given):
        return None
    repeats = (1, x.size) if z is None or z.shape == x.shape else None
    if repeats is None and z.ndim <= x.ndim:
        repeats = repeated(z.shape, x.shape)
    if repeats is None or repeats[0] != 1 or repeats[1] % n:
        return None
    x, z, weight, bias = map(contiguous, (x, z, weight, bias))
    held = given[0] if given else x
    y = cupy.ndarray(x.shape, dtype)
    total = y if kept is None else cupy.ndarray(x.shape, kept)
    also = y if half is None else cupy.ndarray(x.shape, half)
    read = [x if a is None else a for a in (x, z, weight, bias)]
    types = (x.dtype.name, "" if z is None else z.dtype.name, held.dtype.name)
    aligned = not any(a.data.ptr & 31 for a in (*read, y, total, also))
    rows = x.size // n
    form = (center, weight is not None, bias is not None)
    made = _prepared(n, rows, types, dtype, kept, half, aligned, form)
    if made is None:
        return None
    code, blocks, threads = made
    sizes = np.uint32(rows), np.uint32(repeats[1] // n), np.float32(eps)
    code(blocks, threads, (*read, y, total, also, *sizes))
    return (total, y) if half is None else (total, y, also)


def fits(n: int) -> bool:
    """Whether rows of n elements, in packs of 8 or fewer, are in registers."""
    return n % 8 == 0 and n <= 8 * 1024 * (_MOST // 8)


@functools.lru_cache(maxsize=4096)
def _prepared(
    n: int,
    rows: int,
    types: Any,
    dtype: Any,
    kept: Any,
    half: Any,
    aligned: bool,
    form: Any,
) -> Any:
    """The kernel, its blocks, and a block's threads; None for rows too long or many."""
    halves = (*types, "" if half is None else half.name)
    width = 8 if "float16" in halves or "bfloat16" in halves else 4
    packed = aligned and n % width == 0
    width = width if packed else 1
    lanes = _lanes(n, width)
    height = max(1, _THREADS // lanes)
    if -(-n // (lanes * width)) * width > _MOST or -(-rows // height) >= LONG:
        return None
    center, weighted, biased = form
    x, z, given = (ELEMENTS.get(name, "") for name in types)
    made = kernel(
        "add_norm",
        element=ELEMENTS[dtype.name],
        wide="float",
        lanes=lanes,
        packed=packed,
        width=width,
        n=n,
        x=x,
        z=z,
        given=given,
        sum="" if kept is None else ELEMENTS[kept.name],
        half="" if half is None else ELEMENTS[half.name],
        center=center,
        weighted=weighted,
        biased=biased,
    )
    return made, (-(-rows // height),), (lanes, height)


def _lanes(n: int, width: int) -> int:
    """Threads of a row: as many as idle least, of those with few packs each."""
    packs = -(-n // width)
    few = [lanes for lanes in (4, 8, 16, 32) if packs <= 4 * lanes and lanes <= packs]
    if few:
        return min(few, key=lambda lanes: (-(-packs // lanes) * lanes, -lanes))
    lanes = 4 if packs < 4 else 64
    while lanes < 1024 and lanes * 2 < packs:
        lanes *= 2
    return lanes
