"""Reductions over axes: None is all of them, else one axis or a tuple.

Integers keep their dtype as in ONNX (NumPy widens them); sums of booleans count.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burnish.backend import Array, as_places, namespace
from burnish.operator import composed, operator
from burnish.ops._shapes import (
    axes_of,
    broadcast_to,
    cast,
    plain,
    reduced_axes,
    total,
)
from burnish.ops.arrays.shape import reshape
from burnish.ops.elementwise.arithmetic import abs_, pow_, square
from burnish.ops.elementwise.compare import where
from burnish.ops.elementwise.elementary import exp, log
from burnish.steps import step


def kept(a: Any, x: Any, axes: Any) -> Any:
    """`a`, reduced from x over `axes`, with those axes again, of length 1."""
    chosen = reduced_axes(axes, len(x.shape))
    shape = tuple(1 if i in chosen else n for i, n in enumerate(x.shape))
    return a if a.shape == shape else reshape(a, shape=shape)


def _count(x: Any, axes: Any) -> int:
    return math.prod(x.shape[i] for i in reduced_axes(axes, len(x.shape)))


@operator
def reduce_sum(x, *, axes: Any = None, keepdims: bool = False) -> Array:
    """The sum over axes."""
    dtype = None if x.dtype.kind == "b" else x.dtype
    chosen = reduced_axes(axes, x.ndim)
    if x.dtype.kind == "f":
        return _without(total(x, chosen), chosen, keepdims)
    return x.sum(axis=chosen, keepdims=keepdims, dtype=dtype)


def _without(y, axes, keepdims):
    """y, whose `axes` have length 1, without them unless they are kept."""
    return y if keepdims else y.squeeze(axes)


@reduce_sum.vjp
def _(g, y, x, *, axes, keepdims):
    return broadcast_to(kept(g, x, axes), shape=x.shape)


@operator
def reduce_mean(x, *, axes: Any = None, keepdims: bool = False) -> Array:
    """The mean over axes."""
    chosen = reduced_axes(axes, x.ndim)
    if x.dtype.kind == "f" and x.dtype.itemsize >= 4 and x.size:
        return _without(total(x, chosen) * (1 / _count(x, axes)), chosen, keepdims)
    return x.mean(axis=chosen, keepdims=keepdims)


@reduce_mean.vjp
def _(g, y, x, *, axes, keepdims):
    share = kept(g, x, axes)
    if share.dtype == np.float16:  # the count may be greater than it holds
        share = cast(cast(share, dtype=np.float32) / _count(x, axes), dtype=share.dtype)
    else:
        share = share / _count(x, axes)
    return broadcast_to(share, shape=x.shape)


@operator
def reduce_max(x, *, axes: Any = None, keepdims: bool = False) -> Array:
    """The maximum over axes; equal elements share the gradient evenly.

    Of nothing it is the least value of the dtype.
    """
    return _extreme("max", x, axes, keepdims)


@reduce_max.vjp
def _(g, y, x, *, axes, keepdims):
    return _shared(g, y, x, axes)


@operator
def reduce_min(x, *, axes: Any = None, keepdims: bool = False) -> Array:
    """The minimum over axes; equal elements share the gradient evenly.

    Of nothing it is the greatest value of the dtype.
    """
    return _extreme("min", x, axes, keepdims)


@reduce_min.vjp
def _(g, y, x, *, axes, keepdims):
    return _shared(g, y, x, axes)


def _extreme(which, x, axes, keepdims):
    options = {"axis": reduced_axes(axes, x.ndim), "keepdims": keepdims}
    if x.size:
        return getattr(x, which)(**options)
    xp = namespace(x)
    if x.dtype.kind == "f":
        least, greatest = -xp.inf, xp.inf
    elif x.dtype.kind == "b":
        least, greatest = False, True
    else:
        least, greatest = xp.iinfo(x.dtype).min, xp.iinfo(x.dtype).max
    shape = x.sum(**options).shape
    return xp.full(shape, least if which == "max" else greatest, x.dtype)


def _shared(g, y, x, axes):
    tied = cast(x == kept(y, x, axes), dtype=x.dtype)
    return tied * (kept(g, x, axes) / reduce_sum(tied, axes=axes, keepdims=True))


@composed
def reduce_l1(x: Any, *, axes: Any = None, keepdims: bool = False) -> Array:
    """The sum of absolute values over axes."""
    return reduce_sum(abs_(x), axes=axes, keepdims=keepdims)


@operator
def reduce_l2(x, *, axes: Any = None, keepdims: bool = False) -> Array:
    """The root of the sum of squares over axes; the gradient at 0 is 0."""
    chosen = reduced_axes(axes, x.ndim)

    def root(x):
        squares = _without(total(x * x, chosen), chosen, keepdims)
        return namespace(x).sqrt(squares).astype(x.dtype, copy=False)

    return _in_single(root, x)


def _in_single(compute, x):
    """compute(x), of half precision in single precision: squares soon pass 65504."""
    if x.dtype != np.float16:
        return compute(x)
    return compute(x.astype(np.float32)).astype(x.dtype)


@reduce_l2.vjp
def _(g, y, x, *, axes, keepdims):
    y = kept(y, x, axes)
    return x * (kept(g, x, axes) / where(y == 0, 1, y))


@composed
def norm(x: Any, p: float = 2.0, axis: Any = None, keepdims: bool = False) -> Array:
    """The p-norm over axes: the p-th root of the sum of |x| ** p.

    p: any number; 0 counts nonzero elements, inf and -inf are the maximum and minimum
    |x|. The gradient at 0 is 0.
    """
    if p == 2:
        return reduce_l2(x, axes=axis, keepdims=keepdims)
    size = abs_(x)
    if p == 0:
        counted = cast(size != 0, dtype=size.dtype)
        return reduce_sum(counted, axes=axis, keepdims=keepdims)
    if p == 1:
        return reduce_sum(size, axes=axis, keepdims=keepdims)
    if abs(p) == math.inf:
        extreme = reduce_max if p > 0 else reduce_min
        return extreme(size, axes=axis, keepdims=keepdims)
    nothing = _is_zero(size)
    powers = where(nothing, 0 if p > 0 else math.inf, pow_(where(nothing, 1, size), p))
    total = reduce_sum(powers, axes=axis, keepdims=keepdims)
    return _root(total, p)


def _root(total: Any, p: float) -> Any:
    ends, value = _ends(total, p=p)
    return where(ends, value, pow_(where(ends, 1, total), 1 / p))


@step
def _is_zero(x: Any) -> Any:
    return x == 0


@step
def _ends(total: Any, *, p: float) -> tuple[Any, Any]:
    """Where a root has no slope, and the roots as numbers."""
    return (total == 0) | (total == math.inf), pow_(total, 1 / p)


@composed
def reduce_sum_square(x: Any, *, axes: Any = None, keepdims: bool = False) -> Array:
    """The sum of squares over axes."""
    return reduce_sum(square(x), axes=axes, keepdims=keepdims)


@composed
def reduce_log_sum(x: Any, *, axes: Any = None, keepdims: bool = False) -> Array:
    """The logarithm of the sum over axes."""
    return log(reduce_sum(x, axes=axes, keepdims=keepdims))


@operator
def reduce_log_sum_exp(x, *, axes: Any = None, keepdims: bool = False) -> Array:
    """log(sum(exp(x))) over axes, without overflow."""
    xp, axes = namespace(x), reduced_axes(axes, x.ndim)
    if x.dtype.kind != "f":
        x = x.astype(float)
    top = _extreme("max", x, axes, True)
    top = xp.where(xp.isfinite(top), top, 0)
    with np.errstate(divide="ignore"):
        wide = np.result_type(x, np.float32)  # 65504 is soon passed
        y = xp.log(total(xp.exp(x - top, dtype=wide), axes)) + top
    return _without(y.astype(x.dtype, copy=False), axes, keepdims)


@reduce_log_sum_exp.vjp
def _(g, y, x, *, axes, keepdims):
    y = kept(y, x, axes)
    y = where(plain(y) == -math.inf, 0, y)
    return kept(g, x, axes) * exp(x - y)


@operator
def arg_max(
    x,
    *,
    axis: int | None = None,
    keepdims: bool = False,
    select_last_index: bool = False,
) -> Array:
    """The index of the maximum along an axis (None: in x flattened), int64.

    The first of equal ones, or the last where `select_last_index`.
    """
    return _place("argmax", x, axis, keepdims, select_last_index)


@operator
def arg_min(
    x,
    *,
    axis: int | None = None,
    keepdims: bool = False,
    select_last_index: bool = False,
) -> Array:
    """The index of the minimum along an axis; options as in `arg_max`."""
    return _place("argmin", x, axis, keepdims, select_last_index)


def _place(which, x, axis, keepdims, last):
    shape = (1,) * x.ndim
    if axis is None:
        x, axis = x.reshape(-1), 0
    else:
        axis = axes_of(axis, x.ndim)[0]
        shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    if last:
        x = namespace(x).flip(x, axis)
    places = getattr(x, which)(axis=axis)
    if last:
        places = x.shape[axis] - 1 - places
    places = as_places(namespace(x).asarray(places))
    return places.reshape(shape) if keepdims else places


@operator
def reduce_any(x, *, axes: Any = None, keepdims: bool = False) -> Array:
    """Whether any element over axes is true (not zero)."""
    return x.any(axis=reduced_axes(axes, x.ndim), keepdims=keepdims)


@operator
def reduce_all(x, *, axes: Any = None, keepdims: bool = False) -> Array:
    """Whether every element over axes is true (not zero)."""
    return x.all(axis=reduced_axes(axes, x.ndim), keepdims=keepdims)


@operator
def var(x, /, axis: Any = None, keepdims: bool = False, correction: float = 0) -> Array:
    """The mean squared distance from the mean; its divisor is less by `correction`."""
    options = {"axis": reduced_axes(axis, x.ndim), "keepdims": keepdims}
    return _in_single(lambda x: x.var(**options, ddof=correction), x)


@var.vjp
def _(g, y, x, *, axis, keepdims, correction):
    distance = x - reduce_mean(x, axes=axis, keepdims=True)
    return distance * (kept(g, x, axis) * _over(2, x, axis, correction))


def _over(number: float, x: Any, axis: Any, correction: float) -> float:
    """number / (n - correction), the divisor of `var`, which is never below 0."""
    divisor = max(_count(x, axis) - correction, 0)
    return number / divisor if divisor else math.inf


@operator
def std(x, /, axis: Any = None, keepdims: bool = False, correction: float = 0) -> Array:
    """The standard deviation: the root of `var`; the gradient at 0 is 0."""
    options = {"axis": reduced_axes(axis, x.ndim), "keepdims": keepdims}
    return _in_single(lambda x: x.std(**options, ddof=correction), x)


@std.vjp
def _(g, y, x, *, axis, keepdims, correction):
    y = kept(y, x, axis)
    distance = x - reduce_mean(x, axes=axis, keepdims=True)
    share = kept(g, x, axis) / where(y == 0, 1, y)
    return distance * (share * _over(1, x, axis, correction))
