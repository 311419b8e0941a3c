"""Low-bit number formats, two to sixteen bits: their ranges and memory layout.

Whole numbers are two's complement. Small floats have a sign, `exponent` and `mantissa`
bits and no infinities here: values beyond the maximum saturate. Everything is plain
arithmetic on bytes, which CuPy does as NumPy does.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from burnish.backend import namespace
from burnish.errors import InputError
from burnish.ops._tables import beside


class Small(NamedTuple):
    """A low-bit number format: its bits, its minimum and maximum.

    mantissa, least: of floats, the mantissa bits and the exponent of the smallest
    normal number; a mantissa of 0 means integers.
    """

    bits: int
    low: float
    high: float
    mantissa: int = 0
    least: int = 0

    @property
    def whole(self) -> bool:
        return self.mantissa == 0

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of codes and zero points of whole numbers."""
        return np.dtype(np.int16 if self.bits > 8 else np.int8)


SMALL = {
    "q8s": Small(8, -127, 127),
    "q8f": Small(8, -128, 127),
    "q16s": Small(16, -32767, 32767),
    "q16f": Small(16, -32768, 32767),
    "q4s": Small(4, -7, 7),
    "q4f": Small(4, -8, 7),
    "q2s": Small(2, -1, 1),
    "q2f": Small(2, -2, 1),
    "e4m3": Small(8, -448, 448, 3, -6),
    "e5m2": Small(8, -57344, 57344, 2, -14),
    "e2m1": Small(4, -6, 6, 1, 0),
}
STORES = ("native", "packed_u8", "packed_u32")


def small(value: str) -> Small:
    """The `Small` of a low-bit number format; InputError for an unknown name."""
    try:
        return SMALL[value]
    except (KeyError, TypeError):
        raise InputError(
            f"quantization: expected values out of {', '.join(SMALL)}, got {value!r}"
        ) from None


def saturated(y, low: float, high: float):
    """y between low and high; NaN becomes low, as in onnxruntime and PyTorch."""
    xp = namespace(y)
    y = xp.clip(y, low, high)
    if xp is np and not (y.size and np.isnan(y.min())):
        return y  # fmax takes several times as long as clip and min
    return xp.fmax(y, y.dtype.type(low))


def rounded(y, kind: Small):
    """y in kind's range, as the nearest number that kind has; halves go to even.

    NaN is kind.low where kind has whole numbers.
    """
    xp = namespace(y)
    if kind.whole:
        return xp.rint(saturated(y, kind.low, kind.high))
    y = xp.clip(y, kind.low, kind.high)
    unit = xp.ldexp(y.dtype.type(1), _exponents(y, kind) - kind.mantissa)
    return xp.rint(y / unit) * unit


def encoded(numbers, kind: Small):
    """Numbers that `rounded` gave as codes: int8 or int16, of floats uint8."""
    xp = namespace(numbers)
    if kind.whole:
        return numbers.astype(kind.dtype)
    exponents = _exponents(numbers, kind)
    parts = xp.abs(numbers) / xp.ldexp(numbers.dtype.type(1), exponents - kind.mantissa)
    codes = ((exponents - kind.least) << kind.mantissa) + parts.astype(np.int32)
    return (codes + (numbers < 0) * 2 ** (kind.bits - 1)).astype(np.uint8)


def _exponents(y, kind: Small):
    xp = namespace(y)
    _, exponents = xp.frexp(y)
    return xp.where(y == 0, kind.least, xp.maximum(exponents - 1, kind.least))


def packed(codes, kind: Small, store: str | None):
    """Codes of any shape as they are kept.

    "native" leaves them, one an element. "packed_u8" and "packed_u32" lay them one
    after the other into bytes, the first one in the lowest bits, filled up with zeros.
    """
    if store == "native":
        return codes
    xp, each = namespace(codes), max(8 // kind.bits, 1)
    wide = each * (4 if store == "packed_u32" else 1)
    parts = codes.reshape(-1).view(np.uint8)
    flat = xp.zeros(-(-parts.size // wide) * wide, np.uint8)
    flat[: parts.size] = parts & (2 ** min(kind.bits, 8) - 1)
    held = flat[::each].copy()
    for place in range(1, each):
        held |= flat[place::each] << (place * kind.bits)
    return held.view("<u4") if store == "packed_u32" else held


def unpacked(held, kind: Small, store: str | None, shape: tuple[int, ...]):
    """The values of `packed` codes, int8, int16 or float32, in their shape."""
    xp, data = namespace(held), held.reshape(-1).view(np.uint8)
    if kind.bits >= 8 or store == "native":
        numbers = data.view(kind.dtype)
        if not kind.whole:
            numbers = xp.take(beside(data, _numbers(kind)), data)
    else:
        numbers = xp.take(beside(data, _table(kind)), data, axis=0).reshape(-1)
    return numbers[: math.prod(shape)].reshape(shape)


@functools.cache
def _numbers(kind: Small) -> np.ndarray:
    """The number of every code."""
    codes = np.arange(2**kind.bits)
    half = 2 ** (kind.bits - 1)
    if kind.whole:
        return ((codes ^ half) - half).astype(np.int8)
    fields, parts = np.divmod(codes % half, 2**kind.mantissa)
    parts = parts + np.where(fields > 0, 2.0**kind.mantissa, 0)
    exponents = np.maximum(fields, 1) - 1 + kind.least - kind.mantissa
    sizes = np.ldexp(parts, exponents)
    return np.where(codes < half, sizes, -sizes).astype(np.float32)


@functools.cache
def _table(kind: Small) -> np.ndarray:
    """The numbers in every byte, from the lowest bits on: (256, 8 // bits)"""
    places = np.arange(8 // kind.bits) * kind.bits
    codes = np.arange(256)[:, None] >> places & (2**kind.bits - 1)
    return _numbers(kind)[codes]
