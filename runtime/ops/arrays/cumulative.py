"""Running sums and products along an axis, and products over axes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from burnish.backend import Array, namespace
from burnish.operator import composed, operator
from burnish.ops._shapes import axes_of, plain, reduced_axes
from burnish.ops._tables import beside
from burnish.ops.arrays.padding import pad
from burnish.ops.arrays.reduce import kept, reduce_sum
from burnish.ops.arrays.shape import flip, reshape, swapaxes, transpose, unsqueeze
from burnish.ops.elementwise.compare import not_equal, where


@operator
def cum_sum(x, *, axis: int, exclusive: bool = False, reverse: bool = False) -> Array:
    """Sums of the elements up to each one, without it where `exclusive`.

    reverse: sums of the elements from each one to the end.
    """
    xp = namespace(x)
    if reverse:
        x = xp.flip(x, axis)
    y = _running_sums(x, axes_of(axis, x.ndim)[0])
    if exclusive:
        y = xp.roll(y, 1, axis)
        xp.moveaxis(y, axis, 0)[:1] = 0
    return xp.flip(y, axis) if reverse else y


def _running_sums(x, axis):
    """numpy.cumsum, which goes from row to row, and along one, an element at a time."""
    xp, inner = namespace(x), math.prod(x.shape[axis + 1 :])
    if xp is np and inner == 1 and x.shape[axis] >= 2 * _STRIP and x.dtype.char in "fd":
        y = _by_strips(x.reshape(-1, x.shape[axis]))
        if y is not None:
            return y.reshape(x.shape)
    if x.dtype == np.float16 or x.shape[axis] > _LONG or xp is not np or inner < 128:
        wide = {np.float16: np.float32, np.float32: np.float64}.get(x.dtype.type)
        y = xp.cumsum(x, axis, wide or x.dtype)
        return y.astype(x.dtype, copy=False)
    y = x.copy()
    for before, row in itertools.pairwise(np.moveaxis(y, axis, 0)):
        row += before
    return y


def _by_strips(x):
    """Running sums of rows: of short strips by a product, of the strips' sums before.

    None where a strip's sum is not finite: products would spread that to the left.
    """
    rows, width = x.shape
    count = width // _STRIP
    end = count * _STRIP
    strips = np.array(x[:, :end]).reshape(-1, _STRIP)
    sums = strips @ np.ones(_STRIP, x.dtype)
    if not np.isfinite(sums).all():
        return None
    before = np.cumsum(sums.reshape(rows, count), 1, np.float64)
    strips.reshape(rows, count, _STRIP)[:, 1:, 0] += before[:, :-1]
    y = (strips @ np.triu(np.ones((_STRIP, _STRIP), x.dtype))).reshape(rows, end)
    if end == width:
        return y
    last = np.cumsum(x[:, end:], 1) + before[:, -1:].astype(x.dtype)
    return np.concatenate((y, last), axis=1)


_STRIP = 16
_LONG = 1 << 10  # a longer chain of additions is done in float64


@cum_sum.vjp
def _(g, y, x, *, axis, exclusive, reverse):
    return cum_sum(g, axis=axis, exclusive=exclusive, reverse=not reverse)


@composed
def cum_prod(
    x: Any, *, axis: int, exclusive: bool = False, reverse: bool = False
) -> Array:
    """Products of the elements up to each one; options as in `cum_sum`."""
    axis = axes_of(axis, len(x.shape))[0]
    if reverse:
        x = flip(x, axis=axis)
    if exclusive and x.shape[axis]:  # a 1 comes in, the last element goes out
        moved = [(0, 0)] * len(x.shape)
        moved[axis] = (1, -1)
        x = pad(x, moved, constant_values=1)
    y = running_product(x, axis=axis)
    return flip(y, axis=axis) if reverse else y


@operator
def running_product(x, *, axis: int) -> Array:
    """Products of the elements up to and with each one."""
    return namespace(x).cumprod(x, axis, x.dtype)


@running_product.vjp
def _(g, y, x, *, axis):
    if namespace(plain(x)) is np and bool(plain(not_equal(x, 0)).all()):
        return cum_sum(g * y, axis=axis, reverse=True) / x
    x, g = swapaxes(x, axis, -1), swapaxes(g, axis, -1)
    place = np.arange(x.shape[-1])
    later = beside(x, place > place[:, None])
    between = running_product(where(later, unsqueeze(x, axis=-2), 1), axis=-1)
    after = beside(x, place >= place[:, None])
    h = reduce_sum(where(after, unsqueeze(g, axis=-2) * between, 0), axes=-1)
    return swapaxes(h * cum_prod(x, axis=-1, exclusive=True), axis, -1)


@operator
def reduce_prod(x, *, axes: Any = None, keepdims: bool = False) -> Array:
    """The product over axes."""
    return x.prod(axis=reduced_axes(axes, x.ndim), keepdims=keepdims, dtype=x.dtype)


@reduce_prod.vjp
def _(g, y, x, *, axes, keepdims):
    chosen = reduced_axes(axes, len(x.shape))
    order = (*(i for i in range(len(x.shape)) if i not in chosen), *chosen)
    moved = transpose(x, axes=order)
    kept_axes = len(order) - len(chosen)
    lead, reduced = moved.shape[:kept_axes], moved.shape[kept_axes:]
    rows = reshape(moved, shape=(*lead, math.prod(reduced)))
    others = cum_prod(rows, axis=-1, exclusive=True) * cum_prod(
        rows, axis=-1, exclusive=True, reverse=True
    )
    back = tuple(order.index(i) for i in range(len(order)))
    others = transpose(reshape(others, shape=moved.shape), axes=back)
    return kept(g, x, axes) * others
