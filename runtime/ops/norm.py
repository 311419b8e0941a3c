"""Normalisation. Legend: N batch, C channels, *S any further axes.

Statistics of half precision are summed in single precision.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from burnish.autodiff import Variable
from burnish.backend import Array, namespace
from burnish.operator import operator
from burnish.ops._blocks import filled
from burnish.ops._shapes import broadcast_to, sum_to
from burnish.ops.compare import where
from burnish.ops.pool import window_sum
from burnish.ops.reduce import reduce_sum


@operator
def standardize(x, *, axes: tuple[int, ...], eps: float = 1e-5, center: bool = True):
    """(x - mean) / sqrt(variance + eps) over `axes`, and the mean and the variance.

    The statistics keep the axes with size 1. center=False takes 0 for the mean.
    """
    xp = namespace(x)
    wide = np.float32 if x.dtype.itemsize < 4 else x.dtype
    y, mean = x, xp.zeros((1,) * x.ndim, x.dtype)
    if center:
        mean = x.mean(axis=axes, keepdims=True, dtype=wide).astype(x.dtype)
        y = x - mean
    var = xp.square(y, dtype=wide).mean(axis=axes, keepdims=True)
    rstd = (1 / xp.sqrt(var + eps)).astype(x.dtype)
    return y * rstd, mean, var.astype(x.dtype)


@standardize.vjp
def _(g, y, x, *, axes, eps, center):
    unit, _, var = y
    unit_g, mean_g, var_g = g
    rstd, count = (var + eps) ** -0.5, _count(x, axes)
    parts = []
    if unit_g is not None:
        parts.append(_pull(unit_g, unit, rstd, center))
    if mean_g is not None and center:
        parts.append(broadcast_to(mean_g * (1 / count), shape=x.shape))
    if var_g is not None:
        parts.append(var_g * unit * ((2 / count) / rstd))
    return sum(parts[1:], parts[0]) if parts else None


@operator
def layer_norm(x, weight=None, bias=None, *, axis: int = -1, eps: float = 1e-5):
    """Standardized from `axis` to the last one; weight and bias broadcast to those."""
    rank = len(_from(x, axis))
    return filled(_normal, x, weight, bias, rank, eps, True, whole=rank)


@layer_norm.vjp("x", "weight", "bias")
def _(g, y, x, weight=None, bias=None, *, axis, eps):
    return _pull_scaled(g, x, weight, bias, _from(x, axis), eps, True)


@operator
def rms_norm(x, weight=None, *, axis: int = -1, eps: float = 1e-5):
    """x / sqrt(mean of squares from `axis` to the last one + eps) * weight"""
    rank = len(_from(x, axis))
    return filled(_normal, x, weight, None, rank, eps, False, whole=rank)


@rms_norm.vjp("x", "weight")
def _(g, y, x, weight=None, *, axis, eps):
    return _pull_scaled(g, x, weight, None, _from(x, axis), eps, False)[:2]


def _normal(y, x, weight, bias, rank: int, eps: float, center: bool) -> None:
    rstd = _centred(y, x, rank, eps, center)
    y *= rstd.reshape(*rstd.shape, *(1,) * rank)
    if weight is not None:
        y *= weight
    if bias is not None:
        y += bias


def _centred(y: Array, x: Array, rank: int, eps: float, center: bool) -> Array:
    """Write x less its mean over the last `rank` axes; 1 / each row's deviation."""
    xp, lead = namespace(x), x.shape[: x.ndim - rank]
    count = max(prod(x.shape[x.ndim - rank :]), 1)
    if center:
        mean = _row_sums(x, rank) / count
        xp.subtract(x, mean.reshape(*lead, *(1,) * rank), out=y)
    else:
        y[...] = x
    return 1 / xp.sqrt(_row_sums(y, rank, y) / count + eps)


def _row_sums(a: Array, rank: int, b: Array | None = None) -> Array:
    """Sums of a, or of a * b, over the last `rank` axes, which go."""
    xp, lead = namespace(a), a.shape[: a.ndim - rank]
    width = prod(a.shape[a.ndim - rank :])
    a = a.reshape(*lead, width)
    if width > _LONG or xp is not np:  # NumPy's own sums of long rows lose less
        return (a if b is None else a * b.reshape(a.shape)).sum(axis=-1)
    return (
        a @ xp.ones(width, a.dtype) if b is None else xp.vecdot(a, b.reshape(a.shape))
    )


_LONG = 1 << 15


@operator
def batch_norm(x, scale, bias, mean, var, *, eps: float = 1e-5):
    """(x - mean) / sqrt(var + eps) * scale + bias; x (N, C, *S), the others (C,)"""
    xp = namespace(x)
    factor = scale / xp.sqrt(var + eps)
    offset = bias - mean * factor
    factor, offset = (_channels(a.astype(x.dtype), x) for a in (factor, offset))
    if len(x) > 4:  # full planes once: broadcasting along short rows costs as much
        planes = (xp.broadcast_to(a, x.shape[1:]) for a in (factor, offset))
        factor, offset = map(xp.ascontiguousarray, planes)
    return filled(_moved, x, factor, offset)


def _moved(y, x, factor, offset):
    namespace(x).multiply(x, factor, out=y)
    y += offset


@batch_norm.vjp("x")
def _(g, y, x, scale, bias, mean, var, *, eps):
    return g * _channels(scale * (var + eps) ** -0.5, x)


@batch_norm.vjp("scale")
def _(g, y, x, scale, bias, mean, var, *, eps):
    return _per_channel(g * (x - _channels(mean, x))) * (var + eps) ** -0.5


@batch_norm.vjp("bias")
def _(g, y, x, scale, bias, mean, var, *, eps):
    return _per_channel(g)


@batch_norm.vjp("mean")
def _(g, y, x, scale, bias, mean, var, *, eps):
    return -_per_channel(g) * scale * (var + eps) ** -0.5


@batch_norm.vjp("var")
def _(g, y, x, scale, bias, mean, var, *, eps):
    slope = _per_channel(g * (x - _channels(mean, x)))
    return slope * scale * (var + eps) ** -1.5 * -0.5


def batch_norm_train(
    x: Any, scale: Any = None, bias: Any = None, *, eps: float = 1e-5
) -> Any:
    """Standardized by the batch's statistics: (y, mean, variance), the last two (C,)

    The variance is the biased one; gradients flow through the statistics.
    """
    axes = (0, *range(2, len(x.shape)))
    y, mean, var = standardize(x, axes=axes, eps=eps)
    c = x.shape[1]
    return _with_channels(y, scale, bias), mean.reshape(c), var.reshape(c)


def instance_norm(x: Any, scale: Any = None, bias: Any = None, *, eps: float = 1e-5):
    """Each channel of each example standardized; x (N, C, *S), the others (C,)"""
    return group_norm(x, scale, bias, num_groups=x.shape[1], eps=eps)


def group_norm(
    x: Any, scale: Any = None, bias: Any = None, *, num_groups: int, eps: float = 1e-5
) -> Any:
    """Each group of channels standardized; x (N, C, *S), the others (C,)"""
    n, c, *sizes = x.shape
    split = (num_groups, c // num_groups, 1)
    scale, bias = (a if a is None else a.reshape(split) for a in (scale, bias))
    groups = x.reshape(n, *split[:2], prod(sizes))
    return layer_norm(groups, scale, bias, axis=2, eps=eps).reshape(x.shape)


def lrn(
    x: Any, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Any:
    """x / (bias + alpha / size * the sum of squares of `size` channels) ** beta"""
    n, c, *sizes = x.shape
    pads = (((size - 1) // 2, size // 2), (0, 0))
    squares = (x * x).reshape(n, 1, c, prod(sizes))
    total = window_sum(squares, kernel_size=(size, 1), stride=1, padding=pads)
    return x * (total.reshape(x.shape) * (alpha / size) + bias) ** -beta


def lp_normalization(x: Any, *, axis: int = -1, p: int = 2) -> Any:
    """x / its p-norm along `axis` (1 or 2); zeros stay zeros"""
    size = abs(x) if p == 1 else x * x
    total = reduce_sum(size, axes=axis, keepdims=True)
    safe = where(total == 0, 1, total)
    return x / (safe if p == 1 else safe**0.5)


def mean_variance_normalization(x: Any, *, axes: tuple[int, ...] = (0, 2, 3)) -> Any:
    """(x - mean) / standard deviation over `axes`"""
    return standardize(x, axes=tuple(axes), eps=1e-18)[0]


def _pull(g: Any, unit: Any, rstd: Any, center: bool) -> Any:
    """The gradient that goes through standardized values to what they came from."""
    shape = rstd.shape
    part = prod(shape) / prod(unit.shape)
    along = g - unit * (sum_to(g * unit, shape=shape) * part)
    if center:
        along = along - sum_to(g, shape=shape) * part
    return along * rstd


def _pull_scaled(
    g: Any, x: Any, weight: Any, bias: Any, axes: Any, eps: float, center: bool
) -> tuple[Any, Any, Any]:
    bias_g = None if bias is None else sum_to(g, shape=bias.shape)
    if not isinstance(g, Variable) and namespace(g) is np and g.dtype.itemsize > 2:
        return *_pull_in_blocks(g, x, weight, len(axes), eps, center), bias_g
    unit, _, var = standardize(x, axes=axes, eps=eps, center=center)
    inward = g if weight is None else g * weight
    return (
        _pull(inward, unit, (var + eps) ** -0.5, center),
        None if weight is None else sum_to(g * unit, shape=weight.shape),
        bias_g,
    )


def _pull_in_blocks(
    g: Array, x: Array, weight: Array | None, rank: int, eps: float, center: bool
) -> tuple[Array, Array | None]:
    """What `_pull_scaled` says of x and weight, in few passes and none over memory."""
    total = per_row = None
    if (
        weight is not None and weight.ndim > rank
    ):  # of groups: has axes that x is cut at
        shape = (*x.shape[: x.ndim - rank], *weight.shape[weight.ndim - rank :])
        per_row = np.empty(shape, x.dtype)
    elif weight is not None:
        total = np.zeros(x.shape[x.ndim - rank :], x.dtype)

    def step(y: Array, x: Array, g: Array, weight: Any, per_row: Any) -> None:
        lead, ones = x.shape[: x.ndim - rank], (1,) * rank
        count = prod(x.shape[x.ndim - rank :])
        away = np.empty_like(y)
        rstd = _centred(away, x, rank, eps, center)
        np.multiply(g, 1 if weight is None else weight, out=y)
        shift = _row_sums(y, rank) / count * rstd if center else None
        slope = _row_sums(y, rank, away) / count * rstd**3
        y *= rstd.reshape(*lead, *ones)
        if weight is not None:
            through = g * away
            if total is not None:
                rows = rstd.reshape(-1) @ through.reshape(rstd.size, count)
                np.add(total, rows.reshape(total.shape), out=total)
            else:
                per_row[...] = sum_to.value(through, shape=per_row.shape)
                per_row *= rstd.reshape(*lead, *ones)
        away *= slope.reshape(*lead, *ones)
        y -= away
        if shift is not None:
            y -= shift.reshape(*lead, *ones)

    inward = filled(step, x, g, weight, per_row, whole=rank)
    if weight is None:
        return inward, None
    found = total if per_row is None else per_row
    return inward, sum_to.value(found, shape=weight.shape)


def _count(x: Any, axes: tuple[int, ...]) -> int:
    return prod(x.shape[axis] for axis in axes)


def _from(x: Any, axis: int) -> tuple[int, ...]:
    return tuple(range(axis % len(x.shape), len(x.shape)))


def _channels(values: Any, x: Any) -> Any:
    """(C,) seen beside x (N, C, *S)"""
    return values.reshape(-1, *(1 for _ in x.shape[2:]))


def _per_channel(g: Any) -> Any:
    c = g.shape[1]
    return sum_to(g, shape=(1, c, *(1 for _ in g.shape[2:]))).reshape(c)


def _with_channels(y: Any, scale: Any, bias: Any) -> Any:
    if scale is not None:
        y = y * _channels(scale, y)
    return y if bias is None else y + _channels(bias, y)
