"""A sum and the norm of its rows in one kernel, each array of a dtype of its own."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from burnish.backend.cuda.elementwise.fused import repeated
from burnish.backend.cuda.kernels import ELEMENTS, LONG, kernel
from burnish.backend.cuda.norms.rows import contiguous

_MOST = 32  # numbers of a thread, which are in its registers


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
) -> Any:
    """(x + z, its rows standardized in `dtype`), or None where no kernel does it.

    x (..., n); z broadcasts to it, whole rows of it; weight and bias (n,) of one dtype,
    or None. kept: the dtype of the sum; None where nobody asks for it.
    """
    import cupy

    given = [a for a in (weight, bias) if a is not None]
    n = x.shape[-1]
    if any(a.dtype.char not in "eEf" for a in (x, z, *given)) or not x.size:
        return None
    if any(a.shape != (n,) or a.dtype != given[0].dtype for a in given):
        return None
    repeats = (1, x.size) if z.shape == x.shape else None
    if repeats is None and z.ndim <= x.ndim:
        repeats = repeated(z.shape, x.shape)
    if repeats is None or repeats[0] != 1 or repeats[1] % n:
        return None
    x, z, weight, bias = map(contiguous, (x, z, weight, bias))
    held = given[0] if given else x
    y = cupy.ndarray(x.shape, dtype)
    total = y if kept is None else cupy.ndarray(x.shape, kept)
    arrays = (x, z, x if weight is None else weight, x if bias is None else bias)
    types = tuple(a.dtype.name for a in (x, z, held))
    aligned = not any(a.data.ptr & 31 for a in (x, z, y, total))
    rows = x.size // n
    form = (center, weight is not None, bias is not None)
    made = _prepared(n, rows, types, dtype, kept, aligned, form)
    if made is None:
        return None
    code, blocks, threads = made
    sizes = rows, repeats[1] // n, float(eps)
    code(blocks, threads, (*arrays, y, total, *sizes))
    return total, y


@functools.lru_cache(maxsize=4096)
def _prepared(
    n: int, rows: int, types: Any, dtype: Any, kept: Any, aligned: bool, form: Any
) -> Any:
    """The kernel, its blocks, and a block's threads; None for rows too long or many."""
    width = 8 if "float16" in types or "bfloat16" in types else 4
    packed = aligned and n % width == 0
    width = width if packed else 1
    lanes = 32
    while lanes < 1024 and lanes * width * (4 if lanes == 32 else 2) < n:
        lanes *= 2
    height = 4 if lanes == 32 else 1
    if -(-n // (lanes * width)) * width > _MOST or -(-rows // height) >= LONG:
        return None
    center, weighted, biased = form
    x, z, given = (ELEMENTS[name] for name in types)
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
        center=center,
        weighted=weighted,
        biased=biased,
    )
    return made, (-(-rows // height),), (lanes, height)
