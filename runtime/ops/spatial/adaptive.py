"""Pooling to a given output size: x (N, C, *S) -> (N, C, *P)

Place i along an axis sees the elements from floor(i * S / P) up to
ceil((i + 1) * S / P).
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from burnish.backend import Array, as_indices, namespace
from burnish.operator import composed, operator
from burnish.ops._kernels.scatter import put_flat
from burnish.ops._kernels.window import each
from burnish.ops._shapes import plain
from burnish.ops._tables import beside
from burnish.ops.arrays.reduce import reduce_mean
from burnish.ops.elementwise.compare import where
from burnish.ops.linalg.linear import matmul
from burnish.ops.spatial.pool import avg_pool, max_pool


@composed
def adaptive_avg_pool(x: Any, *, output_size: Any) -> Array:
    """The mean of what each place sees; None keeps an axis's size."""
    sizes = x.shape[2:]
    out = sizes_of(sizes, output_size)
    if prod(out) == 1:
        return reduce_mean(x, axes=tuple(range(2, len(x.shape))), keepdims=True)
    if kernel := _even(sizes, out):
        return avg_pool(x, kernel_size=kernel)
    for axis, (n, p) in enumerate(zip(sizes, out, strict=True), start=2):
        if n != p:
            x = _mix(x, _means(n, p), axis)
    return x


@composed
def adaptive_max_pool(x: Any, *, output_size: Any) -> Array:
    """The maximum of what each place sees; None keeps an axis's size."""
    sizes = x.shape[2:]
    if kernel := _even(sizes, sizes_of(sizes, output_size)):
        return max_pool(x, kernel_size=kernel)
    return adaptive_max_pool_with_indices(x, output_size=output_size)[0]


@operator
def adaptive_max_pool_with_indices(x, *, output_size: Any) -> tuple[Array, Array]:
    """`adaptive_max_pool`, and each maximum's index in x.reshape(-1)."""
    xp = namespace(x)
    n, c, *sizes = x.shape
    out = sizes_of(tuple(sizes), output_size)
    if not prod(out):
        return xp.zeros((n, c, *out), x.dtype), xp.zeros((n, c, *out), np.int64)
    # every place's elements as a table; the last one repeats where there are fewer
    places = np.zeros((1, 1), np.int64)
    for length, p in zip(sizes, out, strict=True):
        starts, ends = edges(length, p)
        line = starts[:, None] + np.arange((ends - starts).max())
        line = np.minimum(line, ends[:, None] - 1)
        table = places[:, None, :, None] * length + line[None, :, None, :]
        places = table.reshape(len(places) * p, -1)
    places = beside(x, as_indices(places))
    planes = x.reshape(n * c, prod(sizes))
    found = places[xp.arange(len(places)), _greatest(planes, places)]
    best = xp.take_along_axis(planes, found, axis=1)
    found = found + xp.arange(n * c)[:, None] * prod(sizes)
    return best.reshape(n, c, *out), found.reshape(n, c, *out)


def _greatest(planes: Any, places: Any) -> Any:
    """The index of the first maximum in each output position's window: (planes, P)"""
    xp = namespace(planes)
    if len(planes) * len(places) < _FEW:
        return planes.take(places, axis=1).argmax(axis=-1)
    best = planes.take(places[:, 0], axis=1)
    chosen = xp.zeros(best.shape, np.min_scalar_type(places.shape[1]))
    for number in range(1, places.shape[1]):
        seen = planes.take(places[:, number], axis=1)
        better = (seen > best) | ((seen != seen) & (best == best))  # NaN is greatest
        chosen = where(better, chosen.dtype.type(number), chosen)
        best = xp.maximum(best, seen)
    return chosen


_FEW = 1 << 12  # maxima that are found faster all at once


@adaptive_max_pool_with_indices.vjp
def _(g, y, x, **options):
    return put_flat(g[0], plain(y[1]), shape=x.shape)


def sizes_of(sizes: tuple[int, ...], output_size: Any) -> tuple[int, ...]:
    output_size = each(output_size, len(sizes), "adaptive_pool: output_size")
    return tuple(n if p is None else p for n, p in zip(sizes, output_size, strict=True))


def _even(sizes: tuple[int, ...], out: tuple[int, ...]) -> tuple[int, ...] | None:
    """The kernel, where all places see as much and nothing twice."""
    if any(not p or n % p for n, p in zip(sizes, out, strict=True)):
        return None
    return tuple(n // p for n, p in zip(sizes, out, strict=True))


def edges(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Where each of p places along n elements starts and ends."""
    places = np.arange(p)
    return places * n // p, -(-(places + 1) * n // p)


def _means(n: int, p: int) -> np.ndarray:
    """(P, S): a row of shares for each place."""
    starts, ends = edges(n, p)
    along = np.arange(n)
    seen = (along >= starts[:, None]) & (along < ends[:, None])
    return seen / (ends - starts)[:, None]


def _mix(x: Any, table: np.ndarray, axis: int) -> Any:
    """Each place along `axis` as a weighted sum, the weights a row of `table`."""
    order = list(range(len(x.shape)))
    order[axis], order[-1] = order[-1], order[axis]
    table = beside(x, table.T.astype(x.dtype))
    return matmul(x.transpose(order), table).transpose(order)
