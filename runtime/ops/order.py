"""Sorting, the greatest few, distinct elements."""

from __future__ import annotations

from typing import Any

from burnish.backend import namespace
from burnish.errors import InputError
from burnish.operator import operator
from burnish.ops._shapes import axes_of
from burnish.ops.index import gather, take_along_axis
from burnish.ops.shape import reshape


def sort(x: Any, *, axis: int = -1, descending: bool = False) -> Any:
    """x in order along an axis."""
    places = arg_sort(x, axis=axis, descending=descending)
    return take_along_axis(x, places, axis=axis)


@operator
def arg_sort(x, *, axis: int = -1, descending: bool = False):
    """Where the elements of x in order are; of equal ones the first comes first."""
    xp, n = namespace(x), x.shape[axis]
    if not descending:
        return xp.argsort(x, axis, kind="stable")
    order = xp.argsort(xp.flip(x, axis), axis, kind="stable")
    return n - 1 - xp.flip(order, axis)


def top_k(
    x: Any, k: Any, *, axis: int = -1, largest: bool = True, ordered: bool = True
) -> tuple[Any, Any]:
    """The k greatest (or least) along an axis and their places, best first.

    Of equal ones the first counts more. They come in order also when `ordered` is off.
    """
    places = top_k_places(x, k=int(k), axis=axis, largest=largest)
    return take_along_axis(x, places, axis=axis), places


@operator
def top_k_places(x, *, k: int, axis: int = -1, largest: bool = True):
    """Where the k greatest (or least) along an axis are, best first."""
    n = x.shape[axis]
    if k > n:
        raise InputError(
            f"top_k: expected k up to {n}, the length of the axis, got {k}"
        )
    head = (slice(None),) * axes_of(axis, x.ndim)[0] + (slice(k),)
    return arg_sort(x, axis=axis, descending=largest)[head]


def unique(
    x: Any, *, axis: int | None = None, ordered: bool = True
) -> tuple[Any, Any, Any, Any]:
    """Distinct elements (or slices along an axis), in order or as they first occur.

    With them: where each occurs first, which one each element is, how often it occurs.
    """
    first, inverse, counts = unique_places(x, axis=axis, ordered=ordered)
    values = reshape(x, shape=(-1,)) if axis is None else x
    return gather(values, first, axis=axis or 0), first, inverse, counts


@operator
def unique_places(x, *, axis: int | None = None, ordered: bool = True):
    """What `unique` returns beside the values."""
    xp = namespace(x)
    _, first, inverse, counts = xp.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not ordered:
        order = xp.argsort(first)
        first, counts = first[order], counts[order]
        inverse = xp.argsort(order)[inverse]
    return first, inverse, counts
