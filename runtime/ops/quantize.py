"""Numbers to small integers and back: y = round(x / scale) + zero_point, saturated.

scale and zero_point are one number, one for each place along `axis`, or, with
block_size, one for each block of that many places along it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend import namespace
from burnish.errors import InputError
from burnish.operator import operator
from burnish.ops._shapes import cast
from burnish.ops._window import beside
from burnish.ops.index import gather
from burnish.ops.shape import reshape

_NARROW = {"int4": (np.int8, -8, 7), "uint4": (np.uint8, 0, 15)}
_NARROW |= {"int2": (np.int8, -2, 1), "uint2": (np.uint8, 0, 3)}


@operator
def quantize_linear(
    x, scale, zero_point=None, *, axis: int = 1, block_size: int = 0, dtype: Any = None
):
    """round(x / scale) + zero_point, halves to even, held in the range of the dtype.

    dtype: zero_point's unless given, uint8 without both; "int4" and the like are held
    in a byte each.
    """
    xp = namespace(x)
    if dtype is None:
        dtype = np.uint8 if zero_point is None else zero_point.dtype
    kept, low, high = _range(dtype)
    y = xp.rint(x / _spread(scale, x, axis, block_size))
    if zero_point is not None:
        y = y + _spread(zero_point, x, axis, block_size).astype(y.dtype)
    return xp.clip(y, low, high).astype(kept)


def dequantize_linear(
    x: Any,
    scale: Any,
    zero_point: Any = None,
    *,
    axis: int = 1,
    block_size: int = 0,
) -> Any:
    """(x - zero_point) * scale, in scale's dtype"""
    if zero_point is not None:
        zero_point = cast(_spread(zero_point, x, axis, block_size), dtype=np.int32)
        x = cast(x, dtype=np.int32) - zero_point
    return cast(x, dtype=scale.dtype) * _spread(scale, x, axis, block_size)


def _range(dtype: Any) -> tuple[Any, int, int]:
    """The dtype that holds the values, the least and the greatest."""
    if isinstance(dtype, str) and dtype in _NARROW:
        return _NARROW[dtype]
    dtype = np.dtype(dtype)
    if dtype.kind not in "iu":
        raise InputError(f"quantize_linear: expected an integer dtype, got {dtype}")
    info = np.iinfo(dtype)
    return dtype, info.min, info.max


def _spread(values: Any, x: Any, axis: int, block_size: int) -> Any:
    """`values` in a shape that broadcasts to x."""
    shape = values.shape
    if len(shape) == 0 or shape == (1,):
        return reshape(values, shape=())
    axis %= len(x.shape)
    if block_size:
        blocks = np.arange(x.shape[axis]) // block_size
        return gather(values, beside(values, blocks), axis=axis)
    if len(shape) != 1 or shape[0] != x.shape[axis]:
        raise InputError(
            f"quantization: expected a scale for x {x.shape} with one number, or "
            f"{x.shape[axis]} along axis {axis}, got shape {shape}"
        )
    return reshape(values, shape=(-1, *(1 for _ in x.shape[axis + 1 :])))
