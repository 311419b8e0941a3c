"""Composed functions behind tensor methods: fmod, masked_fill, narrow, permute."""

from __future__ import annotations

from typing import Any

from burnish.backend import Array
from burnish.errors import InputError
from burnish.operator import composed
from burnish.ops._shapes import axes_of, cast, plain, whole
from burnish.ops.arrays.index import non_zero, slice_
from burnish.ops.arrays.shape import swapaxes, transpose
from burnish.ops.elementwise.arithmetic import mod
from burnish.ops.elementwise.compare import is_close, is_nan, where


@composed
def fmod(a: Any, b: Any) -> Array:
    """The remainder of a / b with a's sign; `%` and `mod` give b's."""
    return mod(a, b, fmod=True)


@composed
def masked_fill(x: Any, mask: Any, value: Any) -> Array:
    """`value` where the mask holds; the dtype stays."""
    return cast(where(mask, value, x), dtype=x.dtype)


@composed
def argwhere(x: Any) -> Array:
    """The positions of nonzero elements, one a row."""
    places = swapaxes(non_zero(x), 0, 1)
    return places if x.shape else places[:, :0]


@composed
def narrow(x: Any, axis: int, start: int, length: int) -> Array:
    """`length` slices along an axis from `start` on, which may count from the end.

    Raises InputError for slices that are not there.
    """
    total = x.shape[axes_of(axis, len(x.shape))[0]]
    start, length = whole("narrow", "start", start), whole("narrow", "length", length)
    begin = start + total if start < 0 else start
    if begin < 0 or length < 0 or begin + length > total:
        raise InputError(
            f"narrow: expected slices from 0 to {total} along axis {axis}, "
            f"got {length} from {start} on"
        )
    return slice_(x, (begin,), (begin + length,), (axis,))


@composed
def t(x: Any) -> Array:
    """A matrix's transpose; a vector as it is."""
    if len(x.shape) > 2:
        raise InputError(f"t: expected 2 axes or fewer, got {x.shape}; see mT")
    return transpose(x)


@composed
def permute(x: Any, axes: Any) -> Array:
    """x with its axes in another order."""
    return transpose(x, axes=tuple(axes))


def all_close(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8) -> bool:
    """Whether |a - b| <= atol + rtol * |b| everywhere."""
    close = is_close(a, b, rtol=rtol, atol=atol)
    return bool(plain(close).all())


def contains_nan(x: Any) -> bool:
    """Whether any element is not a number."""
    return bool(plain(is_nan(x)).any())
