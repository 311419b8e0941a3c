"""Quantize and dequantize: y = round(x / scale) + zero_point, saturated.

scale and zero_point are one number, one for each place along `axis`, or, with
block_size, one for each block of that many places along it. Types that NumPy does not
have (int4, float8_e4m3fn and the like) are those of the package ml_dtypes.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from burnish.backend import Array, namespace
from burnish.errors import InputError
from burnish.operator import composed, operator
from burnish.ops._shapes import cast
from burnish.ops._tables import beside
from burnish.ops.arrays.index import take_slices
from burnish.ops.arrays.shape import reshape
from burnish.ops.quantized.small import saturated

_GREATEST = {
    "float8_e4m3fn": 448.0,
    "float8_e4m3fnuz": 240.0,
    "float8_e5m2": 57344.0,
    "float8_e5m2fnuz": 57344.0,
    "float6_e2m3fn": 7.5,
    "float6_e3m2fn": 28.0,
    "float4_e2m1fn": 6.0,
}


def small_type(dtype: Any) -> Any:
    """A dtype or its name as a dtype, also one that ml_dtypes has."""
    try:
        return np.dtype(dtype)
    except TypeError:
        pass
    try:
        import ml_dtypes
    except ImportError:
        raise InputError(
            f"quantization: expected the package ml_dtypes for the element type "
            f"{dtype}; pip install ml_dtypes"
        ) from None
    return np.dtype(getattr(ml_dtypes, dtype))


@operator
def quantize_linear(
    x,
    scale,
    zero_point=None,
    *,
    axis: int = 1,
    block_size: int = 0,
    dtype: Any = None,
    saturate: bool = True,
) -> Array:
    """round(x / scale) + zero_point, halves to even, held in the range of the dtype.

    NaN becomes the least integer of the dtype, as in onnxruntime (x is infinite and so
    is its scale, or x is NaN); the specification leaves that open.
    dtype: zero_point's unless given, uint8 without both. saturate=False lets small
    floats become infinite or NaN beyond their range.
    """
    xp = namespace(x)
    if dtype is None:
        dtype = getattr(zero_point, "dtype", np.uint8)
    dtype = small_type(dtype)
    whole, low, high = _range(dtype)
    y = x / _spread(scale, x, axis, block_size)
    if y.dtype.itemsize < 4:
        y = y.astype(np.float32)
    if whole:
        y = xp.rint(y)
    if zero_point is not None:
        shift = _spread(zero_point, x, axis, block_size)
        y = y + (shift.astype(y.dtype) if hasattr(shift, "dtype") else shift)
    if whole:
        return saturated(y, low, high).astype(dtype)
    return (xp.clip(y, low, high) if saturate else y).astype(dtype)


@composed
def dequantize_linear(
    x: Any,
    scale: Any,
    zero_point: Any = None,
    *,
    axis: int = 1,
    block_size: int = 0,
) -> Array:
    """(x - zero_point) * scale, in scale's dtype"""
    if zero_point is not None:
        wide = np.int32 if "int" in x.dtype.name else np.float32
        shift = _spread(zero_point, x, axis, block_size)
        x = cast(x, dtype=wide) - (
            cast(shift, dtype=wide) if hasattr(shift, "dtype") else shift
        )
    return cast(x, dtype=scale.dtype) * _spread(scale, x, axis, block_size)


@operator
def power_of_two(x, *, rounding: str = "up", saturate: bool = True) -> Array:
    """x as float8_e8m0fnu, which has powers of two alone; the sign is dropped.

    rounding: "up", "down" or "nearest" (halves up). saturate: values beyond 2**127
    becomes that, else NaN.
    """
    xp = namespace(x)
    if rounding not in ("up", "down", "nearest"):
        raise InputError(
            f"power_of_two: expected rounding 'up', 'down' or 'nearest', "
            f"got {rounding!r}"
        )
    bits = xp.ascontiguousarray(x, np.float32).view(np.uint32)
    exponent, fraction = (bits >> 23) & 0xFF, bits & 0x7FFFFF
    if rounding == "nearest":
        half = xp.where(exponent > 0, 0x400000, 0x400001)
        more = fraction >= half
    else:
        more = (fraction > 0) & (rounding == "up")
    special = exponent == 0xFF
    grown = xp.minimum(exponent + more, 0xFE if saturate else 0xFF)
    codes = xp.where(special, 0xFF, grown).astype(np.uint8)
    return codes.reshape(x.shape).view(small_type("float8_e8m0fnu"))


@power_of_two.vjp
def _(g, y, x, *, rounding, saturate):
    return cast(g, dtype=x.dtype)


def _range(dtype: Any) -> tuple[bool, float, float]:
    """Whether the dtype is an integer; its minimum and maximum."""
    if dtype.name in _GREATEST:
        return False, -_GREATEST[dtype.name], _GREATEST[dtype.name]
    found = re.fullmatch(r"(u?)int(\d+)", dtype.name)
    if found is None:
        raise InputError(
            f"quantize_linear: expected an integer dtype or a float of at most eight "
            f"bits, got {dtype}"
        )
    bits = int(found[2])
    if found[1]:
        return True, 0, 2**bits - 1
    return True, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def _spread(values: Any, x: Any, axis: int, block_size: int) -> Any:
    """`values` in a shape that broadcasts to x; plain numbers unchanged."""
    shape = getattr(values, "shape", None)
    if shape is None:
        return values
    if len(shape) == 0 or shape == (1,):
        return reshape(values, shape=())
    axis %= len(x.shape)
    if block_size:
        blocks = np.arange(x.shape[axis]) // block_size
        return take_slices(values, beside(values, blocks), axis=axis)
    if len(shape) != 1 or shape[0] != x.shape[axis]:
        raise InputError(
            f"quantization: expected a scale for x {x.shape} with one number, or "
            f"{x.shape[axis]} along axis {axis}, got shape {shape}"
        )
    return reshape(values, shape=(-1, *(1 for _ in x.shape[axis + 1 :])))
