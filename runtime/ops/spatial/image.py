"""Resizing along any axes, one axis after another."""

from __future__ import annotations

from math import floor, prod
from typing import Any

import numpy as np

from burnish.backend import Array, as_indices, namespace
from burnish.errors import InputError
from burnish.operator import composed, operator
from burnish.ops._kernels.axis_tables import AxisTable, axis_table, check, dense
from burnish.ops._shapes import cast
from burnish.ops._tables import beside
from burnish.ops.arrays.index import take_slices
from burnish.ops.elementwise.compare import where
from burnish.ops.linalg.linear import matmul
from burnish.ops.spatial.adaptive import adaptive_avg_pool

_SPARSE = 8  # a gather costs about as much as this many multiplications of a product


@composed
def resize_image(
    x: Any,
    *,
    sizes: Any = None,
    scales: Any = None,
    axes: Any = None,
    mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor",
    cubic_coeff_a: float = -0.75,
    antialias: bool = False,
    exclude_outside: bool = False,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    roi: Any = None,
) -> Array:
    """x with other sizes along `axes` (all of them unless given), as ONNX's Resize.

    Either sizes or scales, one for each axis; roi holds every axis's start, then every
    axis's end, as shares of it.
    """
    check(mode, coordinate_transformation_mode, nearest_mode)
    rank = len(x.shape)
    axes = [a % rank for a in (range(rank) if axes is None else axes)]
    old = [x.shape[axis] for axis in axes]
    new, factors = _targets(old, sizes, scales, keep_aspect_ratio_policy)
    tables = {
        axis: axis_table(
            n,
            out,
            factor,
            mode=mode,
            coordinates=coordinate_transformation_mode,
            nearest_mode=nearest_mode,
            cubic_coeff_a=cubic_coeff_a,
            antialias=antialias,
            exclude_outside=exclude_outside,
            roi=(0.0, 1.0)
            if roi is None
            else (float(roi[i]), float(roi[len(old) + i])),
        )
        for i, (axis, n, out, factor) in enumerate(
            zip(axes, old, new, factors, strict=True)
        )
        if n != out or factor != 1 or coordinate_transformation_mode.startswith("tf")
    }
    y = _resampled(x, tables)
    return _fill_outside(y, tables, extrapolation_value)


@composed
def interpolate(
    x: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool = False,
    recompute_scale_factor: bool = False,
    antialias: bool = False,
) -> Array:
    """x (N, C, *S) with other spatial sizes, in PyTorch's words.

    mode: "nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic",
    "lanczos" (with six taps for each axis) or "area".
    """
    rank = len(x.shape) - 2
    if (size is None) == (scale_factor is None):
        given = "neither" if size is None else "both"
        raise InputError(f"interpolate: expected size or scale_factor, got {given}")
    if scale_factor is not None:
        factors = _each(scale_factor, rank)
        found = tuple(floor(n * f) for n, f in zip(x.shape[2:], factors, strict=True))
        exactly = recompute_scale_factor or align_corners
        size, scales = found, None if exactly else factors
    else:
        size, scales = _each(size, rank), None
    if min(size, default=1) < 1:
        raise InputError(
            f"interpolate: expected sizes of 1 or more, got {size} for x {x.shape}"
        )
    if mode == "area":
        return adaptive_avg_pool(x, output_size=size)
    if mode not in _TORCH_MODES:
        raise InputError(
            f"interpolate: expected mode among {[*_TORCH_MODES, 'area']}, got {mode!r}"
        )
    kind, coordinates, nearest_mode = _TORCH_MODES[mode]
    return resize_image(
        x,
        sizes=size if scales is None else None,
        scales=scales,
        axes=tuple(range(2, rank + 2)),
        mode=kind,
        coordinate_transformation_mode="align_corners"
        if align_corners
        else coordinates,
        nearest_mode=nearest_mode,
        cubic_coeff_a=-0.5 if antialias else -0.75,
        antialias=antialias,
        exclude_outside=antialias or mode == "lanczos",
    )


_TORCH_MODES = {
    "nearest": ("nearest", "asymmetric", "floor"),
    "nearest-exact": ("nearest", "half_pixel", "round_prefer_ceil"),
    "linear": ("linear", "half_pixel", "floor"),
    "bilinear": ("linear", "half_pixel", "floor"),
    "trilinear": ("linear", "half_pixel", "floor"),
    "bicubic": ("cubic", "half_pixel", "floor"),
    "lanczos": ("lanczos", "half_pixel", "floor"),
}


@operator
def resample(x, index, weight, *, axis: int) -> Array:
    """Each place along `axis` as a weighted sum; index and weight (P, taps)."""
    if index.shape[1] * _SPARSE >= x.shape[axis]:
        return _product(x, dense(index, weight, x.shape[axis]), axis)
    xp = namespace(x)
    shape = (-1, *(1 for _ in x.shape[axis + 1 :]))
    y: Any = None
    for tap in range(index.shape[1]):
        share = beside(x, weight[:, tap].astype(x.dtype)).reshape(shape)
        part = xp.take(x, beside(x, as_indices(index[:, tap])), axis=axis) * share
        y = part if y is None else xp.add(y, part, out=y)
    return y


@resample.vjp("x")
def _(g, y, x, index, weight, *, axis):
    return resample_adjoint(g, index, weight, axis=axis, size=x.shape[axis])


@operator
def resample_adjoint(x, index, weight, *, axis: int, size: int) -> Array:
    """The adjoint of `resample`: every place shared among those that it weighed."""
    return _product(x, dense(index, weight, size).T, axis)


@resample_adjoint.vjp("x")
def _(g, y, x, index, weight, *, axis, size):
    return resample(g, index, weight, axis=axis)


def _product(x, matrix, axis):
    matrix = beside(x, matrix.astype(x.dtype))
    if axis == x.ndim - 1:
        return matmul.value(x, matrix.T)
    lead = x.shape[: axis + 1]
    y = matmul.value(matrix, x.reshape(*lead, prod(x.shape[axis + 1 :])))
    return y.reshape(*lead[:-1], len(matrix), *x.shape[axis + 1 :])


def _resampled(x: Any, tables: dict[int, AxisTable]) -> Any:
    """The axes that shrink most come first; of equal ones, the last axis."""
    dtype = x.dtype
    if dtype.kind != "f" and any(t.weight is not None for t in tables.values()):
        x = cast(x, dtype=np.float64 if dtype.itemsize > 2 else np.float32)
    grows = {a: len(tables[a].places) / max(x.shape[a], 1) for a in tables}
    order = sorted(sorted(tables, reverse=True), key=grows.__getitem__)
    for axis in order:
        index, weight, _ = tables[axis]
        if weight is None:
            x = take_slices(x, beside(x, index[:, 0]), axis=axis)
        else:
            x = resample(x, index, weight, axis=axis)
    return cast(x, dtype=dtype)


def _fill_outside(y: Any, tables: dict[int, AxisTable], value: float) -> Any:
    outside = np.zeros((), bool)
    for axis, table in tables.items():
        if table.outside is not None and table.outside.any():
            shape = (-1, *(1 for _ in y.shape[axis + 1 :]))
            outside = outside | table.outside.reshape(shape)
    if not outside.any():
        return y
    return where(beside(y, outside), y.dtype.type(value), y)


def _targets(
    old: list[int], sizes: Any, scales: Any, policy: str
) -> tuple[list[int], list[float]]:
    """The new sizes, and how each axis is scaled."""
    if sizes is None:
        if scales is None:
            raise InputError("resize: expected sizes or scales, got neither")
        factors = [float(s) for s in scales]
        return [floor(n * f) for n, f in zip(old, factors, strict=True)], factors
    new = [int(n) for n in sizes]
    factors = [m / n if n else 1.0 for m, n in zip(new, old, strict=True)]
    if policy == "stretch":
        return new, factors
    if policy not in ("not_larger", "not_smaller"):
        raise InputError(
            f"resize: expected keep_aspect_ratio_policy 'stretch', 'not_larger' or "
            f"'not_smaller', got {policy!r}"
        )
    factor = min(factors) if policy == "not_larger" else max(factors)
    return [floor(factor * n + 0.5) for n in old], [factor] * len(old)


def _each(value: Any, rank: int) -> tuple[Any, ...]:
    if not isinstance(value, tuple | list):
        return (value,) * rank
    if len(value) != rank:
        raise InputError(
            f"interpolate: expected {rank} numbers or one for x with {rank} spatial "
            f"axes, got {value}"
        )
    return tuple(value)
