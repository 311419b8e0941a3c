"""Cross entropy with class targets, without synchronizing with the GPU."""

from __future__ import annotations

from typing import Any

from burnish.backend.cuda.kernels import ELEMENTS, kernel, named
from burnish.backend.cuda.kernels import wide as wide_type
from burnish.backend.cuda.norms.rows import contiguous, launch, split, takes

_INTEGERS = {
    "int8": "signed char",
    "uint8": "unsigned char",
    "int16": "short",
    "uint16": "unsigned short",
    "int32": "int",
    "uint32": "unsigned",
    "int64": "long long",
}


def targets(
    given: Any,
    weight: Any,
    classes: int,
    dtype: Any,
    ignore_index: int | None,
    mean: bool,
) -> Any:
    """Classes, their shares in `dtype`, and NaN for the mean of none, else 0; or None.

    A target that is no class has NaN for its share: nobody waits to raise an error.
    """
    import cupy

    if named(given.dtype) not in _INTEGERS or dtype.char not in "fd":
        return None
    if weight is not None and named(weight.dtype) not in ELEMENTS:
        return None
    given = cupy.ascontiguousarray(given)
    chosen = cupy.empty(given.shape, cupy.int64)
    shares, blank = cupy.empty(given.shape, dtype), cupy.empty((), dtype)
    made = kernel(
        "targets",
        target=_INTEGERS[named(given.dtype)],
        weight=None if weight is None else ELEMENTS[named(weight.dtype)],
        wide=wide_type(dtype),
        ignores=ignore_index is not None,
        mean=mean,
    )
    weights = shares if weight is None else cupy.ascontiguousarray(weight)
    sizes = (given.size, classes, ignore_index or 0)
    made((1,), (1024,), (given, weights, chosen, shares, blank, *sizes))
    return chosen, shares, blank


def cross_entropy(
    x: Any, classes: Any, shares: Any, axis: int, offset: Any, summed: bool
) -> Any:
    """(losses, or their sum and the offset, softmax of x), or None."""
    import cupy

    if not _fit(x, classes, shares):
        return None
    x, classes, shares = contiguous(x), contiguous(classes), contiguous(shares)
    rows = split(x, axis)
    y = cupy.ndarray(x.shape, x.dtype)
    losses = cupy.ndarray(shares.shape, shares.dtype)
    if not launch("cross_entropy", rows, (x, y), (classes, shares, losses, *rows)):
        return None
    if not summed:
        return losses.astype(x.dtype, copy=False), y
    total = cupy.ndarray((), x.dtype)
    moved = isinstance(offset, cupy.ndarray)
    if not moved or offset.dtype != shares.dtype:
        return (losses.sum() + offset).astype(x.dtype, copy=False), y
    made = kernel(
        "total", element=ELEMENTS[named(x.dtype)], wide=wide_type(shares.dtype)
    )
    made((1,), (1024,), (losses, offset, total, losses.size))
    return total, y


def cross_entropy_gradient(
    slope: Any, shares: Any, y: Any, classes: Any, axis: int
) -> Any:
    """slope * shares * (y - 1 at the classes, y elsewhere), or None."""
    import cupy

    if not _fit(y, classes, shares) or slope.dtype != y.dtype:
        return None
    if slope.size not in (1, shares.size):
        return None
    given = map(contiguous, (slope, shares, classes, y))
    slope, shares, classes, y = given
    rows = split(y, axis)
    out = cupy.ndarray(y.shape, y.dtype)
    done = launch(
        "cross_entropy_gradient",
        rows,
        (y, out),
        (slope, shares, classes, *rows),
        each_row=slope.size > 1,
    )
    return out if done else None


def _fit(x: Any, classes: Any, shares: Any) -> bool:
    """Whether kernels take these: shares in the precision that x is computed in."""
    precise = "float64" if named(x.dtype) == "float64" else "float32"
    return bool(
        x.ndim
        and takes(x)
        and named(classes.dtype) == "int64"
        and named(shares.dtype) == precise
    )
