"""Cross entropy with class targets, without synchronizing with the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend.cuda.calls import Run, called
from burnish.backend.cuda.kernels import ELEMENTS, bound, named, passed
from burnish.backend.cuda.kernels import wide as wide_type
from burnish.backend.cuda.norms.rows import contiguous, launcher, split, takes

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
    options = {"classes": classes, "dtype": dtype, "mean": mean}
    return called(prepared_targets, (given, weight, ignore_index), options)


def prepared_targets(
    given: Any,
    weight: Any,
    ignore_index: int | None,
    *,
    classes: int,
    dtype: Any,
    mean: bool,
) -> Run | None:
    """How to compute `targets` of arrays alike; None where no kernel does it."""
    from cupy import ndarray

    if named(given.dtype) not in _INTEGERS or dtype.char not in "fd":
        return None
    if weight is not None and named(weight.dtype) not in ELEMENTS:
        return None
    made = bound(
        "targets",
        target=_INTEGERS[named(given.dtype)],
        weight=None if weight is None else ELEMENTS[named(weight.dtype)],
        wide=wide_type(dtype),
        ignores=ignore_index is not None,
        mean=mean,
    )
    shape, sizes = given.shape, passed(given.size, classes, ignore_index or 0)

    def run(given: Any, weight: Any, *_: Any) -> Any:
        chosen, shares = ndarray(shape, np.int64), ndarray(shape, dtype)
        blank = ndarray((), dtype)
        weights = shares if weight is None else contiguous(weight)
        arrays = contiguous(given), weights, chosen, shares, blank
        made((1,), (1024,), (*arrays, *sizes))
        return chosen, shares, blank

    return run


def prepared_cross_entropy(
    x: Any, classes: Any, shares: Any, offset: Any, axis: int, summed: bool
) -> Run | None:
    """How to compute (losses, or their sum and the offset, softmax of x), or None."""
    from cupy import ndarray

    if not _fit(x, classes, shares):
        return None
    rows, dtype, wide = split(x, axis), x.dtype, shares.dtype
    made = launcher("cross_entropy", rows, dtype, _is_aligned(x))
    if made is None:
        return None
    added = bound("total", element=ELEMENTS[named(dtype)], wide=wide_type(wide))
    shape, across, sizes = x.shape, shares.shape, passed(*rows)
    (count,) = passed(shares.size)
    is_moved = isinstance(offset, ndarray) and offset.dtype == wide

    def run(x: Any, classes: Any, shares: Any, offset: Any = 0) -> Any:
        y, losses = ndarray(shape, dtype), ndarray(across, wide)
        given = contiguous(x), y, contiguous(classes), contiguous(shares)
        made(*given, losses, *sizes)
        if not summed:
            return losses.astype(dtype, copy=False), y
        if not is_moved:
            return (losses.sum() + offset).astype(dtype, copy=False), y
        total = ndarray((), dtype)
        added((1,), (1024,), (losses, offset, total, count))
        return total, y

    return run


def prepared_gradient(
    slope: Any, shares: Any, y: Any, classes: Any, axis: int
) -> Run | None:
    """How to compute slope * shares * (y - 1 at the classes, y elsewhere), or None."""
    from cupy import ndarray

    if not _fit(y, classes, shares) or slope.dtype != y.dtype:
        return None
    if slope.size not in (1, shares.size):
        return None
    rows, shape, dtype = split(y, axis), y.shape, y.dtype
    sizes = passed(*rows)
    is_each = slope.size > 1
    name = "cross_entropy_gradient"
    made = launcher(name, rows, dtype, _is_aligned(y), each_row=is_each)
    if made is None:
        return None

    def run(slope: Any, shares: Any, y: Any, classes: Any) -> Any:
        out = ndarray(shape, dtype)
        given = contiguous(slope), contiguous(shares), contiguous(classes)
        made(contiguous(y), out, *given, *sizes)
        return out

    return run


def _is_aligned(array: Any) -> bool:
    """Whether an array, or the copy in C order, is read 16 bytes at a time."""
    return not (array._c_contiguous and array.data.ptr & 15)


def _fit(x: Any, classes: Any, shares: Any) -> bool:
    """Whether kernels take these: shares in the precision that x is computed in."""
    precise = "float64" if named(x.dtype) == "float64" else "float32"
    return bool(
        x.ndim
        and takes(x)
        and named(classes.dtype) == "int64"
        and named(shares.dtype) == precise
    )
