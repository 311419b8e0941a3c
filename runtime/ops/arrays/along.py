"""Reductions, scans and places along axes by NumPy's names.

axis: None is all of them; an integer or, in reductions, a tuple. Functions along one
axis take a scalar as PyTorch does: a vector of one. Where Python has the name the
function ends with an underscore here; `burnish.ops` has it without.
"""

from __future__ import annotations

from typing import Any

from burnish.backend import Array
from burnish.operator import composed
from burnish.ops._shapes import cast
from burnish.ops.arrays._scalars import along
from burnish.ops.arrays.cumulative import cum_prod, cum_sum, reduce_prod
from burnish.ops.arrays.gather import take_along_axis
from burnish.ops.arrays.order import argsort, top_k_places
from burnish.ops.arrays.reduce import (
    arg_max,
    arg_min,
    reduce_all,
    reduce_any,
    reduce_log_sum_exp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_sum,
    var,
)
from burnish.ops.arrays.shape import reshape, squeeze


@composed
def sum_(x: Any, axis: Any = None, keepdims: bool = False) -> Array:
    """The sum over axes; small integers and booleans add up to int64."""
    return reduce_sum(_counted(x), axes=axis, keepdims=keepdims)


@composed
def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Array:
    """The mean over axes."""
    return reduce_mean(x, axes=axis, keepdims=keepdims)


@composed
def max_(x: Any, axis: Any = None, keepdims: bool = False) -> Array:
    """The maximum over axes; equal elements share the gradient evenly.

    Of nothing it is the least value of the dtype.
    """
    return reduce_max(x, axes=axis, keepdims=keepdims)


@composed
def min_(x: Any, axis: Any = None, keepdims: bool = False) -> Array:
    """The minimum over axes; equal elements share the gradient evenly.

    Of nothing it is the greatest value of the dtype.
    """
    return reduce_min(x, axes=axis, keepdims=keepdims)


@composed
def prod(x: Any, axis: Any = None, keepdims: bool = False) -> Array:
    """The product over axes; of small integers and booleans int64."""
    return reduce_prod(_counted(x), axes=axis, keepdims=keepdims)


@composed
def any_(x: Any, axis: Any = None, keepdims: bool = False) -> Array:
    """Whether any element over axes is true (not zero)."""
    return reduce_any(x, axes=axis, keepdims=keepdims)


@composed
def all_(x: Any, axis: Any = None, keepdims: bool = False) -> Array:
    """Whether every element over axes is true (not zero)."""
    return reduce_all(x, axes=axis, keepdims=keepdims)


@composed
def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Array:
    """log(sum(exp(x))) over axes, without overflow."""
    return reduce_log_sum_exp(x, axes=axis, keepdims=keepdims)


@composed
def var_mean(
    x: Any, axis: Any = None, keepdims: bool = False, correction: float = 1
) -> tuple[Array, Array]:
    """PyTorch's variance, which divides by one less than the number, and the mean."""
    spread = var(x, axis=axis, keepdims=keepdims, correction=correction)
    return spread, reduce_mean(x, axes=axis, keepdims=keepdims)


@composed
@along
def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Array:
    """The index of the maximum along an axis (None: in x flattened); first of equals.

    int64.
    """
    return arg_max(x, axis=axis, keepdims=keepdims)


@composed
@along
def argmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Array:
    """The index of the minimum along an axis (None: in x flattened); first of equals.

    int64.
    """
    return arg_min(x, axis=axis, keepdims=keepdims)


@composed
@along
def max_with_indices(x: Any, axis: int, keepdims: bool = False) -> tuple[Array, Array]:
    """The maximum along an axis and its index: the first of equal ones."""
    return _extreme(arg_max, x, axis, keepdims)


@composed
@along
def min_with_indices(x: Any, axis: int, keepdims: bool = False) -> tuple[Array, Array]:
    """The minimum along an axis and its index: the first of equal ones."""
    return _extreme(arg_min, x, axis, keepdims)


@composed
@along
def sort_with_indices(
    x: Any, axis: int = -1, descending: bool = False
) -> tuple[Array, Array]:
    """The elements in order along an axis, and where they were."""
    places = argsort(x, axis=axis, descending=descending)
    return take_along_axis(x, places, axis=axis), places


@composed
@along
def arg_top_k(x: Any, k: int, axis: int = -1, largest: bool = True) -> Array:
    """The indices of the k largest (or smallest) along an axis, best first."""
    return top_k_places(x, k=k, axis=axis, largest=largest)


@composed
@along
def cumsum(x: Any, axis: int | None = None) -> Array:
    """Sums of the elements up to each one (None: of x flattened); dtypes as `sum`."""
    x, axis = _lined(_counted(x), axis)
    return cum_sum(x, axis=axis)


@composed
@along
def cumprod(x: Any, axis: int | None = None) -> Array:
    """Products of the elements up to each one (None: of x flattened); as `prod`."""
    x, axis = _lined(_counted(x), axis)
    return cum_prod(x, axis=axis)


def _lined(x: Any, axis: int | None) -> tuple[Any, int]:
    """x and the axis to go along: the only one of x flattened where it is None."""
    return (reshape(x, shape=(-1,)), 0) if axis is None else (x, axis)


def _counted(x: Any) -> Any:
    """Booleans and integers of less than 32 bits, which would overflow, as int64."""
    dtype = x.dtype
    small = dtype.kind in "biu" and dtype.itemsize < 4
    return cast(x, dtype="int64") if small else x


def _extreme(place: Any, x: Any, axis: int, keepdims: bool) -> Any:
    places = place(x, axis=axis, keepdims=True)
    values = take_along_axis(x, places, axis=axis)
    if keepdims:
        return values, places
    return squeeze(values, axis=axis), squeeze(places, axis=axis)
