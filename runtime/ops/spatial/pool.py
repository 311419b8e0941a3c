"""Pooling over any number of spatial axes: x (N, C, *S) -> (N, C, *P)

padding is a number, one for each axis, (before, after) pairs, or a name as in `conv`;
stride None is the kernel's size, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, reduce
from math import prod
from typing import Any

import numpy as np

from burnish.backend import Array, namespace
from burnish.operator import composed, operator
from burnish.ops._kernels.scatter import put_flat, take_flat
from burnish.ops._kernels.window import (
    Window,
    cropped,
    each,
    lowest,
    padded,
    pairs,
    window,
)
from burnish.ops._tables import beside


@operator
def max_pool(
    x,
    /,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Array:
    """The largest element under each window; padding never wins."""
    w = window_of(
        "max_pool", x.shape[2:], kernel_size, stride, padding, dilation, ceil_mode
    )
    y = padded(x, w.pads, lowest(x.dtype))
    return _separably(namespace(x).maximum, y, w)


@max_pool.vjp
def _(g, y, x, **options):
    _, indices = max_pool_with_indices(x, **options)
    return put_flat(g, indices, shape=x.shape)


@operator
def max_pool_with_indices(
    x,
    *,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    storage_order: int = 0,
) -> tuple[Array, Array]:
    """`max_pool`, and each maximum's index in x.reshape(-1), as ONNX counts.

    storage_order: 1 counts the last two axes in column-major order.
    """
    xp = namespace(x)
    w = window_of(
        "max_pool", x.shape[2:], kernel_size, stride, padding, dilation, ceil_mode
    )
    source = padded(x, w.pads, lowest(x.dtype))
    sizes = x.shape[2:]
    places = np.stack([_places(w, at, sizes, storage_order) for at in w.offsets()])
    best = xp.full((*x.shape[:2], *w.out), lowest(x.dtype), x.dtype)
    chosen = xp.empty(best.shape, np.min_scalar_type(len(places)))
    chosen[...] = beside(x, (places >= 0).argmax(axis=0))  # where nothing is greater
    for number, offset in enumerate(w.offsets()):
        seen = source[w.under(offset)]
        xp.copyto(chosen, number, where=seen > best)
        xp.maximum(best, seen, out=best)
    flat = beside(x, places.reshape(-1))
    where = flat[chosen * np.int64(prod(w.out)) + xp.arange(prod(w.out)).reshape(w.out)]
    planes = xp.arange(prod(x.shape[:2]), dtype=np.int64) * prod(sizes)
    where += planes.reshape(*x.shape[:2], *(1 for _ in sizes))
    return best, where


@max_pool_with_indices.vjp
def _(g, y, x, *, storage_order, **options):
    _, indices = max_pool_with_indices(x, **options)
    return put_flat(g[0], indices, shape=x.shape)


@operator
def max_unpool(x, indices, *, shape: tuple[int, ...]) -> Array:
    """Zeros of `shape` with x's elements at the flat `indices` of a max pool."""
    out = namespace(x).zeros(prod(shape), x.dtype)
    out[indices.reshape(-1)] = x.reshape(-1)
    return out.reshape(shape)


@max_unpool.vjp("x")
def _(g, y, x, indices, *, shape):
    return take_flat(g, indices)


@operator
def window_sum(
    x,
    *,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Array:
    """The sum of the elements under each window."""
    w = window_of(
        "window_sum", x.shape[2:], kernel_size, stride, padding, dilation, ceil_mode
    )
    return _separably(namespace(x).add, padded(x, w.pads), w)


@window_sum.vjp
def _(g, y, x, **options):
    return window_spread(g, sizes=x.shape[2:], **options)


@operator
def window_spread(
    x,
    *,
    sizes: tuple[int, ...],
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Array:
    """The adjoint of `window_sum`: every element added to all that its window saw."""
    w = spread_window(sizes, kernel_size, stride, padding, dilation, ceil_mode)
    for axis in reversed(range(len(sizes))):
        here = axis - len(sizes)
        shape = list(x.shape)
        shape[here] = sizes[axis] + sum(w.pads[axis])
        out = namespace(x).zeros(shape, x.dtype)
        for offset in range(w.kernel[axis]):
            out[_line(w, axis, offset)] += x
        x = out
    return cropped(x, w.pads)


def spread_window(sizes, kernel_size, stride, padding, dilation, ceil_mode):
    """The geometry of windows over `sizes`, of maps that `window_spread` makes."""
    kernel, stride = _numbers(kernel_size, stride, len(sizes))
    return window("window_spread", sizes, kernel, stride, padding, dilation, ceil_mode)


@window_spread.vjp
def _(g, y, x, *, sizes, **options):
    return window_sum(g, **options)


@composed
def avg_pool(
    x: Any,
    *,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    divisor_override: int | None = None,
) -> Array:
    """The mean of the elements under each window.

    count_include_pad: padding counts as elements that are 0; what ceil_mode adds
    behind it never counts.
    """
    options = {
        "kernel_size": kernel_size,
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "ceil_mode": ceil_mode,
    }
    total = window_sum(x, **options)
    if divisor_override is not None:
        return total * (1 / divisor_override)
    given = tuple(x.shape[2:]), tuple(options.values()), bool(count_include_pad)
    try:
        share = _share(*given)
    except TypeError:  # lists have no hash
        share = _share.__wrapped__(*given)
    if isinstance(share, float):
        return total * share
    return total * beside(x, share.astype(x.dtype))


@composed
def lp_pool(
    x: Any,
    *,
    kernel_size: Any,
    p: float = 2,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Array:
    """(the sum of |element| ** p under each window) ** (1 / p)"""
    powers = x * x if p == 2 else abs(x) ** p
    total = window_sum(
        powers,
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
        dilation=dilation,
        ceil_mode=ceil_mode,
    )
    return total ** (1 / p)


@composed
def global_avg_pool(x: Any) -> Array:
    """(N, C, *S) -> (N, C, 1, ...): the mean over every spatial axis."""
    return x.mean(axis=_spatial(x), keepdims=True)


@composed
def global_max_pool(x: Any) -> Array:
    """(N, C, *S) -> (N, C, 1, ...): the maximum over every spatial axis."""
    return x.max(axis=_spatial(x), keepdims=True)


@composed
def global_lp_pool(x: Any, *, p: float = 2) -> Array:
    """(N, C, *S) -> (N, C, 1, ...): the p-norm over every spatial axis."""
    powers = x * x if p == 2 else abs(x) ** p
    return powers.sum(axis=_spatial(x), keepdims=True) ** (1 / p)


def _spatial(x: Any) -> tuple[int, ...]:
    return tuple(range(2, len(x.shape)))


def _numbers(kernel: Any, stride: Any, rank: int) -> Any:
    kernel = each(kernel, rank, "pool: kernel")
    return kernel, kernel if stride is None else stride


def window_of(
    where: str,
    sizes: tuple[int, ...],
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil: bool,
) -> Window:
    kernel, stride = _numbers(kernel, stride, len(sizes))
    return window(where, sizes, kernel, stride, padding, dilation, ceil)


def _line(w: Window, axis: int, offset: int) -> tuple[Any, ...]:
    """The index of what place `offset` of the kernel sees along one axis."""
    start, step = offset * w.dilation[axis], w.stride[axis]
    seen = slice(start, start + step * (w.out[axis] - 1) + 1, step)
    return (..., seen, *(slice(None) for _ in w.kernel[axis + 1 :]))


def _separably(combine: Callable[..., Array], x: Array, w: Window) -> Array:
    """Windows combined along one axis after another: k + k steps, not k * k."""
    for axis, k in enumerate(w.kernel):
        y = x[_line(w, axis, 0)]
        if k > 1:
            y = combine(y, x[_line(w, axis, 1)])
        for offset in range(2, k):
            combine(y, x[_line(w, axis, offset)], out=y)
        x = y
    return x.copy() if x.base is not None else x


def _places(
    w: Window, offset: tuple[int, ...], sizes: tuple[int, ...], storage_order: int
) -> np.ndarray:
    """The index in its plane of each window's element `offset`; -1 on padding."""
    rank = len(sizes)
    order = list(range(rank))
    if storage_order:
        order[-2:] = order[:-3:-1]
    weights, count = [0] * rank, 1
    for axis in reversed(order):
        weights[axis], count = count, count * sizes[axis]
    place, inside = np.zeros((), np.int64), np.ones((), bool)
    for axis in range(rank):
        start = offset[axis] * w.dilation[axis] - w.pads[axis][0]
        line = start + np.arange(w.out[axis]) * w.stride[axis]
        place = np.add.outer(place, line * weights[axis])
        inside = np.logical_and.outer(inside, (line >= 0) & (line < sizes[axis]))
    return np.where(inside, place, -1)


@lru_cache(256)
def _share(
    sizes: tuple[int, ...], options: tuple[Any, ...], counts: bool
) -> float | np.ndarray:
    """1 / the elements that a window counts: one number, or one for each window.

    options: those of `window_of`. counts: whether padding does.
    """
    w = window_of("avg_pool", sizes, *options)
    ends = pairs(options[2], sizes, w.spans, w.stride, "avg_pool")
    shares = [
        1 / _counts(w, ends[axis][1], axis, n, counts) for axis, n in enumerate(sizes)
    ]
    if all((share == share[0]).all() for share in shares):
        return float(prod(share[0] for share in shares))
    table: np.ndarray = reduce(np.multiply.outer, shares)
    table.flags.writeable = False
    return table


def _counts(w: Window, end: int, axis: int, n: int, padding: bool) -> np.ndarray:
    """How many elements each window along an axis counts; end: padding behind."""
    before, after = w.pads[axis]
    counted = np.zeros(n + before + after)
    counted[before : before + n] = 1
    if padding:
        counted[: n + before + end] = 1
    reach = np.arange(w.kernel[axis]) * w.dilation[axis]
    starts = np.arange(w.out[axis]) * w.stride[axis]
    return np.maximum(counted[starts[:, None] + reach].sum(axis=1), 1)
