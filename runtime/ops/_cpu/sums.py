"""Reductions of the last axes, rows added by number, and losses, by kernels."""

from __future__ import annotations

import functools
from math import prod

import numpy as np

from burnish.ops import loss
from burnish.ops._cpu import call
from burnish.ops._cpu.call import dense, element_wise, launch, spreads, suits
from burnish.ops._shapes import reduced_axes
from burnish.ops.arrays import gather, index, reduce

_CHAIN = 1 << 9
"""Numbers that are added one after another at most, so that no digits are lost."""

_OFTEN = 4
"""Updates of an element on average at most, which are added one by one."""

_APART = 61
"""Distance of the indices that are looked at for one that occurs too often."""

_LONGEST = 1 << 14
"""Elements of a row at most, which are added in 64 chains."""

_WIDE = 64
"""Columns from which first axes are worth the kernel, where rows are more."""


def _register(function, mode, least):
    """A kernel of a reduction."""

    @function.on("numpy")
    def _(x, *, axes=None, keepdims=False):
        if suits(x, gain=0.5) and x.flags.c_contiguous:
            known = axes is None or isinstance(axes, (int, tuple))
            if known and (sides := _sides(x.shape, axes, least)):
                return _reduced(x, keepdims, *sides)
            if mode == "sum" and _is_all(x.shape, axes):
                y = call.summed([], x) * np.float32(1 / x.size if is_mean else 1)
                return np.full((1,) * x.ndim, y) if keepdims else y
        return function.value(x, axes=axes, keepdims=keepdims)

    def _reduced(x, keepdims, sides, shape, whole):
        y = np.empty(whole if keepdims else shape, x.dtype)
        width, inner = sides["width"], sides["inner"]
        scale = 1 / width if is_mean else 1.0
        if mode == "sum" and inner >= width:
            np.matmul(_ones(width), x.reshape(width, inner), out=y.reshape(inner))
            return np.multiply(y, scale, out=y) if is_mean else y
        launch(
            "reduce", 2 * x.size, x=x, out=y, mode=_number(mode), **sides, scale=scale
        )
        return y

    is_mean = function is reduce.reduce_mean


@functools.cache
def _number(mode):
    from burnish.kernels.records import REDUCTIONS

    return REDUCTIONS[mode]


@functools.lru_cache(1 << 5)
def _ones(count):
    return np.ones(count, np.float32)


@functools.lru_cache(1 << 10)
def _sides(shape, axes, least):
    """Sizes ahead of axes, of them and behind them; the result's shape, and with 1s.

    None where the axes are others than the first or the last ones, and where NumPy is
    as fast: for one row, for sums of rows of at most `least`, which are products, for
    few columns, and for more columns than rows unless sums of them are one product.
    """
    chosen = sorted(reduced_axes(axes, len(shape)))
    count, last = len(chosen), len(shape) - len(chosen)
    if not 0 < count < len(shape) or chosen[-1] - chosen[0] >= count:
        return None
    rest = shape[:last] if chosen[0] == last else shape[count:]
    width, size = prod(shape) // max(1, prod(rest)), prod(rest)
    whole = tuple(1 if i in chosen else n for i, n in enumerate(shape))
    if chosen[0] == last:
        sides = {"outer": size, "width": width, "inner": 1}
        return (sides, rest, whole) if size > 1 and least < width <= _LONGEST else None
    sides = {"outer": 1, "width": width, "inner": size}
    is_product = least > 1 and size >= width <= _CHAIN
    is_known = is_product or _WIDE <= size < width
    return (sides, rest, whole) if not chosen[0] and is_known else None


def _is_all(shape, axes):
    """Whether all axes are reduced."""
    return axes is None or len(reduced_axes(axes, len(shape))) == len(shape)


_register(reduce.reduce_sum, "sum", _CHAIN)
_register(reduce.reduce_mean, "sum", _CHAIN)
_register(reduce.reduce_max, "max", 1)


@index.put_rows.on("numpy")
def _(x, indices, *, rows):
    width = prod(x.shape[1:])
    known = suits(x) and rows and indices.dtype == np.int64
    if not (known and indices.shape == x.shape[:1] and _keeps(indices, rows, width)):
        return index.put_rows.value(x, indices, rows=rows)
    y = np.empty((rows, *x.shape[1:]), x.dtype)
    launch(
        "add_rows", x.size + y.size / 4, g=dense(x), ids=dense(indices), out=y,
        count=len(x), rows=rows, width=width, skip=-1,
    )  # fmt: skip
    return y


def _keeps(indices, rows, width):
    """Whether indices are of rows, and none occurs too often to be added one by one.

    Of single elements NumPy counts repeats as slowly as it adds in double precision.
    """
    low = indices.min()
    if low < -rows or indices.max() >= rows:
        return False
    if width == 1:
        return indices.size <= _OFTEN * rows and not _repeat(indices)
    if indices.size <= _CHAIN:
        return True
    return np.bincount(indices if low >= 0 else indices % rows).max() <= _CHAIN


def _repeat(indices):
    """Whether one occurs more than _CHAIN times, as far as a sample tells."""
    sample, most = np.sort(indices.reshape(-1)[::_APART]), _CHAIN // _APART
    return bool((sample[most:] == sample[:-most]).any())


@gather.scatter_rows.on("numpy")
def _(x, indices, updates, *, reduction="none"):
    few = reduction == "add" and np.size(updates) <= _OFTEN * x.size
    known = (few or reduction == "none") and suits(x, updates)
    known = known and _are_rows(x, indices, updates)
    if not known or (few and _repeat(indices)):
        return gather.scatter_rows.value(x, indices, updates, reduction=reduction)
    y = np.empty(x.shape, x.dtype)
    launch(
        "set_rows", x.size, x=dense(x), updates=dense(updates), ids=dense(indices),
        out=y, count=indices.size, rows=len(x), width=prod(x.shape[1:]),
        is_sum=reduction == "add",
    )  # fmt: skip
    return y


def _are_rows(x, indices, updates):
    """Whether indices are of x's rows, and there is a row of updates for each."""
    if type(indices) is not np.ndarray or indices.dtype != np.int64:
        return False
    if not indices.size or updates.shape != indices.shape + x.shape[1:]:
        return False
    return -len(x) <= indices.min() and indices.max() < len(x)


@loss.huber.on("numpy")
def _(a, b, *, delta=1.0, summed=False):
    if a.shape != b.shape or not suits(a, b):
        return loss.huber.value(a, b, delta=delta, summed=summed)
    steps = [("huber", 0, 1, 0, 0.0, delta)]
    return (call.summed if summed else element_wise)(steps, a, b)


@loss.huber.vjp("a", on="numpy")
def _(g, y, a, b, *, delta, summed):
    return _pulled(g, a, b, delta)


@loss.huber.vjp("b", on="numpy")
def _(g, y, a, b, *, delta, summed):
    return _pulled(g, b, a, delta)


def _pulled(g, a, b, delta):
    """g times a - b held within delta"""
    if a.shape != b.shape or not (suits(a, b, g) and spreads(a, g)):
        return NotImplemented
    return element_wise([("huber_slope", 0, 1, 2, 0.0, delta)], a, b, g)
