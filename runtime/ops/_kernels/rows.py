"""Rows standardized to mean 0 and variance 1, some at a time, and the gradient.

NumPy's arrays only, of single precision or more. An operation between rows and one
number a row costs NumPy twice what it costs between whole arrays; where rows are short,
numbers of rows and of columns are brought together by a product of rank 2 first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from burnish.backend import Array

_BLOCK = 1 << 20  # bytes of some rows: they stay near, and calls are few
_LONG = 1 << 12  # products of more lose digits, and how many depends on the library
_quiet = np.errstate(over="ignore", invalid="ignore")


@_quiet
def scaled_rows(x: Array, weight: Any, bias: Any, eps: float, center: bool) -> Array:
    """(x - mean) / deviation * weight + bias; x (R, D), the others (D,) or None"""
    y = np.empty(x.shape, x.dtype)
    factor, shift = (_pair(x, 1 if weight is None else weight) for _ in range(2))
    if bias is not None:
        shift[1] = bias
    shifts = center or bias is not None
    scratch = _scratch(x)
    sides = np.zeros((len(scratch), 2), x.dtype)
    for part in _parts(x):
        out = y[part]
        plane, side = scratch[: len(out)], sides[: len(out)]
        near, mean, rstd = _moments(x[part], eps, center)
        side[:, 0], side[:, 1] = rstd, 0
        np.multiply(near, np.matmul(side, factor, out=plane), out=out)
        if shifts:
            side[:, 0], side[:, 1] = mean * -rstd, 1
            out += np.matmul(side, shift, out=plane)
    return y


@_quiet
def pull_rows(
    g: Array, x: Array, weight: Any, eps: float, center: bool
) -> tuple[Array, Array, Array]:
    """The gradients of x (R, D), weight and bias (D,) of `scaled_rows`; g is of y."""
    y = np.empty(x.shape, x.dtype)
    factor = _pair(x, 1 if weight is None else weight)
    sums = np.zeros((2, x.shape[1]))
    scratch = _scratch(x)
    sides = np.zeros((len(scratch), 2), x.dtype)
    for part in _parts(x):
        out, slope = y[part], g[part]
        plane, side = scratch[: len(out)], sides[: len(out)]
        near, mean, rstd = _moments(x[part], eps, center)
        through = np.multiply(slope, near, out=plane)
        sums[0] += rstd @ through
        side[:, 0], side[:, 1] = mean * -rstd, 1
        sums += side.T @ slope
        along, plain = (_row_sums(a, factor[0]) for a in (through, slope))
        pulled = _pulled(along, plain, mean, rstd, near)
        side[:, 0], side[:, 1] = rstd, 0
        np.multiply(slope, np.matmul(side, factor, out=plane), out=out)
        _subtract(out, near, pulled, plane, center)
    weight_g, bias_g = sums.astype(x.dtype)
    return y, weight_g, bias_g


@_quiet
def scaled_groups(x: Array, weight: Any, bias: Any, eps: float) -> Array:
    """Each (C, S) of x (R, C, S) brought to mean 0 and variance 1, scaled and moved.

    weight and bias are (R, C), or None.
    """
    y = np.empty(x.shape, x.dtype)
    for part in _parts(x):
        some = x[part]
        near, mean, rstd = _moments(some.reshape(len(some), -1), eps, True)
        factor = _factor(rstd, weight, part, some)
        offset = -mean[:, None] * factor
        if bias is not None:
            offset += bias[part]
        np.multiply(near.reshape(some.shape), factor[..., None], out=y[part])
        y[part] += offset[..., None]
    return y


@_quiet
def pull_groups(
    g: Array, x: Array, weight: Any, eps: float
) -> tuple[Array, Array, Array]:
    """The gradients of x, weight and bias of `scaled_groups`, the last two (R, C)."""
    y = np.empty(x.shape, x.dtype)
    weight_g, bias_g = (np.empty(x.shape[:2], x.dtype) for _ in range(2))
    scratch = _scratch(x)
    for part in _parts(x):
        some, slope = x[part], g[part]
        flat = some.reshape(len(some), -1)
        near, mean, rstd = _moments(flat, eps, True)
        shape = (len(some) * some.shape[1], some.shape[2])
        plain = _row_sums(slope.reshape(shape)).reshape(some.shape[:2])
        along = _row_sums(slope.reshape(shape), near.reshape(shape))
        along = along.reshape(some.shape[:2])
        weight_g[part] = (along - mean[:, None] * plain) * rstd[:, None]
        bias_g[part] = plain
        factor = _factor(rstd, weight, part, some)
        by = 1 if weight is None else weight[part]
        pulled = _pulled((along * by).sum(1), (plain * by).sum(1), mean, rstd, near)
        out = np.multiply(slope, factor[..., None], out=y[part]).reshape(flat.shape)
        plane = scratch[: len(some)].reshape(flat.shape)
        _subtract(out, near, pulled, plane, True)
    return y, weight_g, bias_g


def _parts(x: Array) -> Iterator[slice]:
    """Cuts of x along its first axis."""
    step = _rows_at_once(x)
    for start in range(0, len(x), step):
        yield slice(start, start + step)


def _rows_at_once(x: Array) -> int:
    row = x.nbytes // max(len(x), 1)
    return min(max(1, _BLOCK // max(row, 1)), _LONG)


def _scratch(x: Array) -> Array:
    return np.empty((min(_rows_at_once(x), len(x)), *x.shape[1:]), x.dtype)


def _moments(x: Array, eps: float, center: bool) -> tuple[Array, Array, Array]:
    """x (R, D), each row's mean (0 without center), 1 / each row's deviation.

    The mean of squares less the squared mean loses few digits while the mean is small
    beside the deviation; where one is not, the rows are moved to mean 0 before.
    """
    count = max(x.shape[1], 1)
    var = _row_sums(x, x) / count
    mean = np.zeros_like(var)
    if center:
        mean = _row_sums(x) / count
        squared = mean * mean
        var -= squared
        if not (squared <= 4 * var).all():
            x = x - mean[:, None]
            var = _row_sums(x, x) / count
            mean = np.zeros_like(var)
    return x, mean, 1 / np.sqrt(var + eps)


def _row_sums(a: Array, b: Array | None = None) -> Array:
    """Sums of rows of a, or of a * b; b is like a, or one row."""
    if a.shape[-1] > _LONG:  # NumPy's own sums of long rows lose less
        return (a if b is None else a * b).sum(axis=-1)
    if b is None:
        return a @ np.ones(a.shape[-1], a.dtype)
    return a @ b if b.ndim == 1 else np.vecdot(a, b)


def _pair(x: Array, row: Any) -> Array:
    """A row like x's and one of zeros: products of rank 2 are BLAS's work, of 1 not."""
    pair = np.zeros((2, x.shape[1]), x.dtype)
    pair[0] = row
    return pair


def _pulled(
    along: Array, plain: Array, mean: Array, rstd: Array, x: Array
) -> tuple[Array, Array]:
    """How much of x, and of 1, to subtract from each row's gradient.

    along: the sums of gradient times weight times x; plain: those without x.
    """
    slope = (along - mean * plain) * rstd**3 / max(x.shape[1], 1)
    return slope, plain * rstd / max(x.shape[1], 1) - mean * slope


def _subtract(
    out: Array, x: Array, pulled: tuple[Array, Array], scratch: Array, center: bool
) -> None:
    slope, shift = pulled
    out -= np.multiply(x, slope[:, None], out=scratch)
    if center:
        out -= shift[:, None]


def _factor(rstd: Array, weight: Any, part: slice, x: Array) -> Array:
    """The factor of each channel of x (R, C, S)."""
    if weight is None:
        return np.broadcast_to(rstd[:, None], x.shape[:2])
    return rstd[:, None] * weight[part]
