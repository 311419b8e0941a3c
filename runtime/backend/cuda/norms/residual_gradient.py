"""The gradients of a sum and the norm of its rows, in one kernel and a sum of parts.

A norm's result is float32, with copies in half precision for products. Each product's
gradient is added as it is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burnish.backend.cuda.kernels import ELEMENTS, kernel
from burnish.backend.cuda.norms.residual import fits
from burnish.backend.cuda.norms.rows import channel_sums, contiguous

_PARTS, _HEIGHT, _WIDTH = 264, 4, 8
_MOST = 1 << 31


def norm_gradient(
    g: Any,
    halves: Sequence[Any],
    beyond: Any,
    x: Any,
    weight: Any,
    eps: float,
    *,
    center: bool,
    half: np.dtype[Any],
    rounds: bool,
) -> Any:
    """The gradients of (x, x as `half`, weight, bias), or None where no kernel does it.

    g: the result's own gradient, float32 as x is, or None; halves: those of its copies
    in half precision. beyond: x's from elsewhere, or None. The second gradient is None
    unless `rounds`.
    """
    import cupy

    n = x.shape[-1]
    singles = [a for a in (g, beyond, x, weight) if a is not None]
    if any(a.dtype.char != "f" for a in singles) or any(
        a.dtype != half for a in halves
    ):
        return None
    if any(
        a.shape != x.shape
        for a in (*halves, *(b for b in (g, beyond) if b is not None))
    ):
        return None
    rows = x.size // n if n else 0
    if not rows or not fits(n) or rows >= _MOST or not (halves or g is not None):
        return None
    g, beyond, x, weight = map(contiguous, (g, beyond, x, weight))
    halves = [contiguous(a) for a in halves]
    out = cupy.ndarray(x.shape, x.dtype)
    also = cupy.ndarray(x.shape, half) if rounds else None
    lanes = 32
    while lanes * _WIDTH * 4 < n:
        lanes *= 2
    height = _HEIGHT if lanes == 32 else 1
    parts = min(_PARTS, -(-rows // height))
    sums = cupy.ndarray((parts, 2 * n), np.float32)
    read = [x if a is None else a for a in (g, *halves, beyond, x, weight)]
    if any(a.data.ptr & 31 for a in (*read, out, sums)):
        return None
    run = kernel(
        "norm_gradient",
        element="float",
        wide="float",
        half=ELEMENTS[half.name],
        lanes=lanes,
        height=height,
        packed=True,
        width=_WIDTH,
        n=n,
        plain=g is not None,
        halves=len(halves),
        passes=beyond is not None,
        weighted=weight is not None,
        center=center,
        rounds=rounds,
    )
    given = (*read, out, out if also is None else also, sums)
    run((parts,), (lanes, height), (*given, np.uint32(rows), np.float32(eps)))
    total = channel_sums(sums, parts, 2 * n, 1)
    return out, also, total[:n], total[n:]
