"""Normalisation. Legend: N batch, C channels, *S any further axes.

Statistics of half precision are summed in single precision.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from burnish.autodiff import Variable, recording
from burnish.backend import Array, namespace
from burnish.errors import InputError
from burnish.operator import composed, operator
from burnish.ops._kernels.blocks import filled
from burnish.ops._kernels.rows import pull_groups, pull_rows, scaled_groups, scaled_rows
from burnish.ops._shapes import broadcast_to, ranked, sum_to
from burnish.ops.arrays.reduce import reduce_sum
from burnish.ops.elementwise.compare import where
from burnish.ops.spatial.pool import window_sum


@operator
def standardize(
    x, *, axes: tuple[int, ...], eps: float = 1e-5, center: bool = True
) -> tuple[Array, Array, Array]:
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
def _pull_standardized(g, y, x, *, axes, eps, center):
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


@composed
def layer_norm(
    x: Any,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Array:
    """Standardized over the last axes, which are of `normalized_shape`."""
    axis = _last_axes("layer_norm", x, normalized_shape)
    return layer_norm_from(x, weight, bias, axis=axis, eps=eps)


@operator
def layer_norm_from(
    x, weight=None, bias=None, *, axis: int = -1, eps: float = 1e-5
) -> Array:
    """Standardized from `axis` to the last one; weight and bias broadcast to those."""
    return _scaled(x, weight, bias, _from(x, axis), eps, True)


@layer_norm_from.vjp("x", "weight", "bias")
def _(g, y, x, weight=None, bias=None, *, axis, eps):
    return _pull_scaled(g, x, weight, bias, _from(x, axis), eps, True)


@composed
def rms_norm(
    x: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None
) -> Array:
    """x / sqrt(mean of squares over the last axes + eps) * weight

    eps: None is the step of x's dtype from 1 to the next number.
    """
    axis = _last_axes("rms_norm", x, normalized_shape)
    eps = float(np.finfo(x.dtype).eps) if eps is None else eps
    return rms_norm_from(x, weight, axis=axis, eps=eps)


@operator
def rms_norm_from(x, weight=None, *, axis: int = -1, eps: float = 1e-5) -> Array:
    """x / sqrt(mean of squares from `axis` to the last one + eps) * weight"""
    return _scaled(x, weight, None, _from(x, axis), eps, False)


@rms_norm_from.vjp("x", "weight")
def _(g, y, x, weight=None, *, axis, eps):
    return _pull_scaled(g, x, weight, None, _from(x, axis), eps, False)[:2]


@composed
def group_norm(
    x: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Array:
    """Each group of channels standardized; x (N, C, *S), the others (C,)"""
    return group_norm_of(x, weight, bias, num_groups=num_groups, eps=eps)


@operator
def group_norm_of(
    x, scale=None, bias=None, *, num_groups: int, eps: float = 1e-5
) -> Array:
    """`group_norm` with the arrays first."""
    wide = _wide(x)
    if namespace(x) is np:
        rows, weight, moved = (
            _group_rows(a, wide, num_groups) for a in (wide, scale, bias)
        )
        y = scaled_groups(rows, weight, moved, eps)
    else:
        groups, weight, moved, axes = _grouped(wide, scale, bias, num_groups)
        y = _scaled_by_formula(groups, weight, moved, axes, eps, True)
    return _narrow(y.reshape(x.shape), x)


@group_norm_of.vjp("x", "scale", "bias")
def _(g, y, x, scale=None, bias=None, *, num_groups, eps):
    given = (x, scale, bias)
    if _is_plain(g):
        slope, rows, weight = (_group_rows(a, x, num_groups) for a in (g, x, scale))
        inward, *others = pull_groups(slope, rows, weight, eps)
        parts = inward, *(a.reshape(len(x), x.shape[1]).sum(axis=0) for a in others)
    else:
        groups, weight, moved, axes = _grouped(*given, num_groups)
        g = g.reshape(groups.shape)
        parts = _pull_by_formula(g, groups, weight, moved, axes, eps, True)
    return tuple(
        a if a is None else part.reshape(a.shape)
        for a, part in zip(given, parts, strict=True)
    )


@composed
def instance_norm(
    x: Any, *, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Array:
    """Each channel of each example standardized; x (N, C, *S), the others (C,)"""
    ranked("instance_norm: x", x, -2)
    return group_norm(x, x.shape[1], weight, bias, eps)


@operator
def batch_norm(
    x, running_mean, running_var, weight=None, bias=None, *, eps: float = 1e-5
) -> Array:
    """(x - mean) / sqrt(var + eps) * weight + bias; x (N, C, *S), the others (C,)"""
    xp = namespace(x)
    mean, var = map(_wide, (running_mean, running_var))
    factor = _or_one(weight) / xp.sqrt(var + eps)
    offset = (0 if bias is None else bias) - mean * factor
    factor, offset = (_channels(a.astype(x.dtype), x) for a in (factor, offset))
    if len(x) > 4:  # full planes once: broadcasting along short rows costs as much
        planes = (xp.broadcast_to(a, x.shape[1:]) for a in (factor, offset))
        factor, offset = map(xp.ascontiguousarray, planes)
    return filled(_moved, x, factor, offset)


def _moved(y, x, factor, offset):
    namespace(x).multiply(x, factor, out=y)
    y += offset


@batch_norm.vjp("x")
def _(g, y, x, mean, var, weight=None, bias=None, *, eps):
    return g * _channels(_or_one(weight) * (var + eps) ** -0.5, x)


@batch_norm.vjp("weight")
def _(g, y, x, mean, var, weight, bias=None, *, eps):
    return _per_channel(g * (x - _channels(mean, x))) * (var + eps) ** -0.5


@batch_norm.vjp("bias")
def _(g, y, x, mean, var, weight, bias, *, eps):
    return _per_channel(g)


@batch_norm.vjp("running_mean")
def _(g, y, x, mean, var, weight=None, bias=None, *, eps):
    return -_per_channel(g) * _or_one(weight) * (var + eps) ** -0.5


@batch_norm.vjp("running_var")
def _(g, y, x, mean, var, weight=None, bias=None, *, eps):
    slope = _per_channel(g * (x - _channels(mean, x)))
    return slope * _or_one(weight) * (var + eps) ** -1.5 * -0.5


def _or_one(weight):
    return 1 if weight is None else weight


@composed
def batch_norm_train(
    x: Any, scale: Any = None, bias: Any = None, *, eps: float = 1e-5
) -> tuple[Array, Array, Array]:
    """Standardized by the batch's statistics: (y, mean, variance), the last two (C,)

    The variance is the biased one; gradients flow through the statistics.
    """
    if _has_kernel(x):
        return channel_norm(x, scale, bias, eps=eps)
    return _channel_norm(x, scale, bias, eps)


def _has_kernel(x):
    """Whether one kernel does it for an array, or for a recorded one of a step."""
    from burnish.kernels import direct

    tape = recording.tape
    if tape is not None:
        return tape.is_step and direct.usable() is not None
    xp = namespace(x.data if isinstance(x, Variable) else x)
    if xp is np:
        return direct.usable() is not None
    return xp.__name__ == "cupy"


@operator
def channel_norm(
    x, scale=None, bias=None, *, eps: float = 1e-5
) -> tuple[Array, Array, Array]:
    """`batch_norm_train` as one operator."""
    return _channel_norm(x, scale, bias, eps)


@channel_norm.vjp("x", "scale", "bias")
def _(g, y, x, scale=None, bias=None, *, eps):
    shape = (1, -1, *(1 for _ in x.shape[2:]))
    inward, *others = g
    mean, var = (a.reshape(shape) for a in y[1:])
    unit = (x - mean) * (var + eps) ** -0.5
    slope = inward if scale is None or inward is None else inward * _channels(scale, x)
    g = (slope, *(a if a is None else a.reshape(shape) for a in others))
    options = {"axes": (0, *range(2, len(x.shape))), "eps": eps, "center": True}
    return (
        _pull_standardized(g, (unit, mean, var), x, **options),
        None if scale is None or inward is None else _per_channel(inward * unit),
        None if bias is None or inward is None else _per_channel(inward),
    )


def _channel_norm(x, scale, bias, eps):
    axes = (0, *range(2, len(x.shape)))
    y, mean, var = standardize(x, axes=axes, eps=eps)
    c = x.shape[1]
    return _with_channels(y, scale, bias), mean.reshape(c), var.reshape(c)


@composed
def lrn(
    x: Any, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Array:
    """x / (bias + alpha / size * the sum of squares of `size` channels) ** beta"""
    ranked("lrn: x", x, -2)
    n, c, *sizes = x.shape
    pads = (((size - 1) // 2, size // 2), (0, 0))
    squares = (x * x).reshape(n, 1, c, prod(sizes))
    total = window_sum(squares, kernel_size=(size, 1), stride=1, padding=pads)
    return x * (total.reshape(x.shape) * (alpha / size) + bias) ** -beta


@composed
def lp_normalization(x: Any, *, axis: int = -1, p: int = 2) -> Array:
    """x / its p-norm along `axis` (1 or 2); zeros stay zeros"""
    size = abs(x) if p == 1 else x * x
    total = reduce_sum(size, axes=axis, keepdims=True)
    safe = where(total == 0, 1, total)
    return x / (safe if p == 1 else safe**0.5)


@composed
def mean_variance_normalization(x: Any, *, axes: tuple[int, ...] = (0, 2, 3)) -> Array:
    """(x - mean) / standard deviation over `axes`"""
    return standardize(x, axes=tuple(axes), eps=1e-18)[0]


def _pull(g: Any, unit: Any, rstd: Any, center: bool) -> Any:
    """The gradient of the input of a standardization."""
    shape = rstd.shape
    part = prod(shape) / max(prod(unit.shape), 1)
    along = g - unit * (sum_to(g * unit, shape=shape) * part)
    if center:
        along = along - sum_to(g, shape=shape) * part
    return along * rstd


def _scaled(x, weight, bias, axes, eps, center):
    """x standardized over its last axes, times weight, plus bias."""
    wide, shape = _wide(x), x.shape[axes[0] :]
    if _is_of_rows(wide, axes, weight, bias):
        weight, bias = (_as_row(a, wide, shape) for a in (weight, bias))
        y = scaled_rows(_as_rows(wide, axes), weight, bias, eps, center)
        y = y.reshape(x.shape)
    else:
        y = _scaled_by_formula(wide, weight, bias, axes, eps, center)
    return _narrow(y, x)


def _scaled_by_formula(x, weight, bias, axes, eps, center):
    y = standardize.value(x, axes=axes, eps=eps, center=center)[0]
    if weight is not None:
        y = y * weight
    return y if bias is None else y + bias


def _pull_scaled(g, x, weight, bias, axes, eps, center):
    """The gradients of x, weight and bias in `_scaled`."""
    if not (_is_plain(g) and _is_of_rows(x, axes, weight, bias)):
        return _pull_by_formula(g, x, weight, bias, axes, eps, center)
    shape = x.shape[axes[0] :]
    rows, slope = _as_rows(x, axes), _as_rows(g, axes)
    inward, *others = pull_rows(slope, rows, _as_row(weight, x, shape), eps, center)
    return inward.reshape(x.shape), *(
        a if a is None else _row_like(a, part, shape)
        for a, part in zip((weight, bias), others, strict=True)
    )


def _pull_by_formula(g, x, weight, bias, axes, eps, center):
    unit, _, var = standardize(x, axes=axes, eps=eps, center=center)
    inward = g if weight is None else g * weight
    return (
        _pull(inward, unit, (var + eps) ** -0.5, center),
        None if weight is None else sum_to(g * unit, shape=weight.shape),
        None if bias is None else sum_to(g, shape=bias.shape),
    )


def _is_plain(g):
    return not isinstance(g, Variable) and namespace(g) is np and g.dtype.itemsize > 2


def _is_of_rows(x, axes, *given):
    """Whether weight and bias broadcast to the last axes of x."""
    alike = (a is None or prod(a.shape[: -len(axes)]) == 1 for a in given)
    return namespace(x) is np and all(alike)


def _as_rows(x, axes):
    return x.reshape(prod(x.shape[: axes[0]]), prod(x.shape[axes[0] :]))


def _as_row(a, x, shape):
    if a is None:
        return None
    if a.shape != shape:
        a = np.broadcast_to(a.reshape(a.shape[-len(shape) :]), shape)
    return a.astype(x.dtype, copy=False).reshape(-1)


def _row_like(a, row, shape):
    """The gradient of `a` from that of the row that it was broadcast to."""
    if row.size != a.size:
        row = sum_to(row.reshape(shape), shape=a.shape[-len(shape) :])
    return row.reshape(a.shape)


def _group_rows(a, x, groups):
    """x (N, C, *S), or (C,) beside it, a row for each group"""
    if a is None:
        return None
    n, c, *sizes = x.shape
    if a.ndim == 1 < x.ndim:
        a = np.broadcast_to(a.astype(x.dtype, copy=False), (n, c))
        return a.reshape(n * groups, c // groups)
    return a.reshape(n * groups, c // groups, prod(sizes))


def _grouped(x, scale, bias, groups):
    """x (N, groups, channels, S), what broadcasts to it, and the axes of a group."""
    n, c, *sizes = x.shape
    split = (groups, c // groups, 1)
    scale, bias = (a if a is None else a.reshape(split) for a in (scale, bias))
    return x.reshape(n, *split[:2], prod(sizes)), scale, bias, (2, 3)


def _wide(x):
    """Half precision as single, and integers as double precision."""
    if x.dtype.kind != "f":
        return x.astype(np.float64)
    return x.astype(np.float32) if x.dtype.itemsize < 4 else x


def _narrow(y, x):
    return y.astype(x.dtype, copy=False) if x.dtype.kind == "f" else y


def _count(x: Any, axes: tuple[int, ...]) -> int:
    return prod(x.shape[axis] for axis in axes)


def _last_axes(name: str, x: Any, normalized_shape: Any) -> int:
    """The first of x's last axes that have this shape, counted from the end."""
    given = normalized_shape
    shape = (given,) if isinstance(given, int | np.integer) else tuple(given)
    if not shape or tuple(x.shape[-len(shape) :]) != shape:
        raise InputError(
            f"{name}: expected normalized_shape to be the last sizes of x {x.shape}, "
            f"got {given}"
        )
    return -len(shape)


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
