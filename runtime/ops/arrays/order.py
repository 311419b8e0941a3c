"""Sorting, top-k, distinct elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burnish.backend import Array, as_places, namespace
from burnish.errors import InputError
from burnish.operator import composed, operator
from burnish.ops._shapes import axes_of, cast
from burnish.ops._tables import beside
from burnish.ops.arrays.gather import take_along_axis
from burnish.ops.arrays.index import take_slices
from burnish.ops.arrays.reduce import reduce_sum
from burnish.ops.arrays.shape import reshape, squeeze


@composed
def sort(x: Any, axis: int = -1, descending: bool = False) -> Array:
    """x in order along an axis."""
    places = argsort(x, axis=axis, descending=descending)
    return take_along_axis(x, places, axis=axis)


@operator
def argsort(x, /, axis: int = -1, descending: bool = False) -> Array:
    """The indices that sort x; equal elements keep their order."""
    axis = axes_of(axis, x.ndim)[0]
    xp, n = namespace(x), x.shape[axis]
    if not descending:
        return as_places(xp.argsort(x, axis, kind="stable"))
    order = xp.argsort(xp.flip(x, axis), axis, kind="stable")
    return as_places(n - 1 - xp.flip(order, axis))


@composed
def top_k(
    x: Any, k: Any, axis: int = -1, largest: bool = True, ordered: bool = True
) -> tuple[Array, Array]:
    """The k largest (or smallest) along an axis and their indices, best first.

    Of equal ones the first counts more. They come in order also when `ordered` is off.
    """
    places = top_k_places(x, k=int(k), axis=axis, largest=largest)
    return take_along_axis(x, places, axis=axis), places


@operator
def top_k_places(x, *, k: int, axis: int = -1, largest: bool = True) -> Array:
    """The indices of the k largest (or smallest) along an axis, best first."""
    axis = axes_of(axis, x.ndim)[0]
    n = x.shape[axis]
    if not 0 <= k <= n:
        raise InputError(
            f"top_k: expected k up to {n}, the length of the axis, got {k}"
        )
    if namespace(x) is np and 0 < k <= n // 4:
        few = k <= _ROUNDS and n >= 32 * k and x.dtype.kind in "fiu"
        choose = _picked if few else _chosen
        places = choose(np.moveaxis(x, axis, -1), k, largest)
        if places is not None:
            return as_places(np.moveaxis(places, -1, axis))
    head = (slice(None),) * axis + (slice(k),)
    return argsort(x, axis=axis, descending=largest)[head]


def _picked(x, k, largest):
    """`top_k_places` of the last axis, one after another: finding one is fast.

    None where the worst possible number is among them, which hides those picked.
    """
    n = x.shape[-1]
    rows = np.array(x).reshape(-1, n)
    each, places = np.arange(len(rows)), np.empty((len(rows), k), np.int64)
    bounds = np.finfo(x.dtype) if x.dtype.kind == "f" else np.iinfo(x.dtype)
    worst = bounds.min if largest else bounds.max
    if x.dtype.kind == "f":
        worst = -np.inf if largest else np.inf
    for i in range(k):
        found = rows.argmax(axis=1) if largest else rows.argmin(axis=1)
        places[:, i] = found
        values = rows[each, found]
        if (values == worst).any() or (not largest and (values != values).any()):
            return None
        rows[each, found] = worst
    return places.reshape(*x.shape[:-1], k)


_ROUNDS = 24


def _chosen(x, k, largest):
    """`top_k_places` of the last axis without sorting it; None where the last ties."""
    n = x.shape[-1]
    last = n - k if largest else k - 1
    bound = np.partition(x, last, axis=-1)[..., last, None]
    among = x >= bound if largest else x <= bound
    found = np.flatnonzero(among)
    if found.size != x.size // n * k or (bound != bound).any():
        return None
    places = (found % n).reshape(*x.shape[:-1], k)
    if (np.count_nonzero(among, axis=-1) != k).any():
        return None
    values = np.take_along_axis(x, places, -1)
    order = argsort(values, axis=-1, descending=largest)
    return np.take_along_axis(places, order, -1)


@composed
def median(x: Any, axis: int | None = None, keepdims: bool = False) -> Array:
    """The middle one along an axis (None: of x flattened), of two their mean.

    NaN where one is among them, and of no floats at all.
    """
    x = cast(x, dtype="float64") if x.dtype.kind in "biu" else x
    if axis is None and 0 in x.shape:
        return reduce_sum(x, keepdims=keepdims) * math.nan
    lesser = median_with_indices(x, axis=axis, keepdims=keepdims)[0]
    count = math.prod(x.shape) if axis is None else x.shape[axis]
    if count % 2:
        return lesser
    greater = -median_with_indices(-x, axis=axis, keepdims=keepdims)[0]
    return lesser / 2 + greater / 2


@composed
def median_with_indices(
    x: Any, axis: int | None = None, keepdims: bool = False
) -> tuple[Array, Array]:
    """PyTorch's median, of two the lesser, and where it is first, int64."""
    rank = len(x.shape)
    flat = reshape(x, shape=(-1,)) if axis is None else x
    along = 0 if axis is None else axes_of(axis, rank)[0]
    places = median_places(flat, axis=along)
    values = take_along_axis(flat, places, axis=along)
    if axis is None:
        shape = (1,) * rank if keepdims else ()
        return reshape(values, shape=shape), reshape(places, shape=shape)
    if keepdims:
        return values, places
    return squeeze(values, axis=axis), squeeze(places, axis=axis)


@operator
def median_places(x, *, axis: int) -> Array:
    """The index of the median along an axis, which is kept with length 1."""
    xp, n = namespace(x), x.shape[axis]
    if n == 0:
        raise InputError(f"median: expected elements along axis {axis}, got {x.shape}")
    middle = xp.partition(x, (n - 1) // 2, axis)
    found = x == xp.take(middle, beside(x, np.array([(n - 1) // 2])), axis)
    if x.dtype.kind == "f":
        absent = xp.isnan(x)
        found = xp.where(absent.any(axis=axis, keepdims=True), absent, found)
    return as_places(xp.expand_dims(found.argmax(axis=axis), axis))


@composed
def unique_all(x: Any) -> tuple[Array, Array, Array, Array]:
    """Distinct elements in order; where each occurs first, which one each is, counts.

    The inverse has x's shape.
    """
    values, first, inverse, counts = unique_of(x)
    return values, first, reshape(inverse, shape=x.shape), counts


@composed
def unique_of(
    x: Any, *, axis: int | None = None, ordered: bool = True
) -> tuple[Array, Array, Array, Array]:
    """Distinct elements (or slices along an axis), in order or as they first occur.

    With them: where each occurs first, which one each element is, how often it occurs.
    """
    first, inverse, counts = unique_places(x, axis=axis, ordered=ordered)
    values = reshape(x, shape=(-1,)) if axis is None else x
    return take_slices(values, first, axis=axis or 0), first, inverse, counts


@operator
def unique_places(
    x, *, axis: int | None = None, ordered: bool = True
) -> tuple[Array, Array, Array]:
    """The index outputs of `unique`: first places, inverse, counts."""
    xp = namespace(x)
    _, first, inverse, counts = xp.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not ordered:
        order = xp.argsort(first)
        first, counts = first[order], counts[order]
        inverse = xp.argsort(order)[inverse]
    return as_places(first), as_places(inverse), as_places(counts)
