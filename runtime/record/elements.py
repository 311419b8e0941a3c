"""Arrays as bytes: the encoding of one array in every format but text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from burnish.errors import RecordError
from burnish.serialize.elements import (
    BITS,
    WIDER,
    code_of,
    decode,
    dtype_named,
    encode,
)

Arrays: TypeAlias = dict[str, np.ndarray]

_WIDE = "complex128"  # safetensors, whose names of types these are, has none for it


def name_of(array: np.ndarray) -> str:
    """NumPy's or ml_dtypes' name of the elements; RecordError unless they are numbers.

    Text, objects, dates and structures have none.
    """
    name = array.dtype.name
    if name != _WIDE:
        code_of(name, "record")
    return name


def dtype_called(name: Any) -> np.dtype[Any]:
    """The dtype of that name; RecordError for what `name_of` never gives."""
    if name == _WIDE:
        return np.dtype(_WIDE)
    if not isinstance(name, str) or name in BITS:
        raise RecordError(f"expected the name of a dtype, got {name!r}")
    code_of(name, "dtype")
    return dtype_named(name, "record")


def size_of(name: str, shape: Sequence[int]) -> int:
    """The bytes that an array takes. Raises RecordError for an invalid shape."""
    if not all(type(size) is int and size >= 0 for size in shape) or len(shape) > 64:
        raise RecordError(f"expected a shape of at most 64 sizes, got {shape!r:.80}")
    bits = 128 if name == _WIDE else BITS[code_of(name, "dtype")]
    if bits * math.prod(shape) % 8:
        raise RecordError(f"expected whole bytes of {name}, got shape {list(shape)}")
    return bits * math.prod(shape) // 8


def to_bytes(array: np.ndarray) -> memoryview:
    """The elements in C order, little-endian, those under a byte packed."""
    size_of(name_of(array), array.shape)
    if array.dtype.name == _WIDE:
        array = np.ascontiguousarray(array).reshape(-1).view("float64")
    return encode(array, "record")


def from_bytes(data: Any, name: Any, shape: Any) -> np.ndarray:
    """The array that `to_bytes` wrote; it shares the memory of `data`, read-only.

    bfloat16 without ml_dtypes is widened to float32, which is exact.
    """
    if not isinstance(name, str) or not isinstance(shape, list | tuple):
        raise RecordError(f"expected a dtype and a shape, got {name!r} and {shape!r}")
    wanted = size_of(name, shape)
    if len(data) != wanted:
        raise RecordError(
            f"expected {wanted} bytes of {name} {list(shape)}, got {len(data)}"
        )
    if name == _WIDE:
        parts = decode(data, "F64", (2 * math.prod(shape),), "record")
        return parts.view(_WIDE).reshape(shape)
    made = decode(data, code_of(name, "record"), tuple(shape), "record")
    return made.astype(dtype_called(name)) if name in WIDER else made
