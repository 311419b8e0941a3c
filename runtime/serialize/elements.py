"""Element types: the format's names for them, and bytes to arrays and back.

Elements narrower than a byte are packed from the lowest bit upwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend import Array, on_host
from burnish.errors import RecordError

_TYPES = {  # in the order by which the safetensors package sorts a file, last first
    "BOOL": (8, "bool"),
    "F4": (4, "float4_e2m1fn"),
    "F6_E2M3": (6, "float6_e2m3fn"),
    "F6_E3M2": (6, "float6_e3m2fn"),
    "U8": (8, "uint8"),
    "I8": (8, "int8"),
    "F8_E5M2": (8, "float8_e5m2"),
    "F8_E4M3": (8, "float8_e4m3fn"),
    "F8_E8M0": (8, "float8_e8m0fnu"),
    "F8_E4M3FNUZ": (8, "float8_e4m3fnuz"),
    "F8_E5M2FNUZ": (8, "float8_e5m2fnuz"),
    "I16": (16, "int16"),
    "U16": (16, "uint16"),
    "F16": (16, "float16"),
    "BF16": (16, "bfloat16"),
    "I32": (32, "int32"),
    "U32": (32, "uint32"),
    "F32": (32, "float32"),
    "C64": (64, "complex64"),
    "F64": (64, "float64"),
    "I64": (64, "int64"),
    "U64": (64, "uint64"),
}
BITS = {code: bits for code, (bits, _) in _TYPES.items()}
RANK = {code: rank for rank, code in enumerate(_TYPES)}
_NAMES = {code: name for code, (_, name) in _TYPES.items()}
_CODES = {name: code for code, name in _NAMES.items()}
WIDER = {"int2": "int8", "int4": "int8", "uint2": "uint8", "uint4": "uint8"}
"""The wider integer dtype for those that the format has no name for."""
_CODES |= {name: _CODES[wider] for name, wider in WIDER.items()}


def code_of(dtype: Any, where: str) -> str:
    """The format's name of a dtype (or of that name itself): float32 -> "F32".

    Integers of 2 and 4 bits are held in 8. Raises RecordError, starting with `where`,
    when the format has none.
    """
    if isinstance(dtype, str) and dtype in BITS:
        return dtype
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    try:
        return _CODES[name]
    except KeyError:
        raise RecordError(
            f"{where}: expected a dtype that safetensors can hold, got {name}"
        ) from None


def dtype_of(code: str, where: str) -> np.dtype[Any]:
    """The dtype of elements that the format calls `code`, little-endian.

    Raises RecordError when it is one that only ml_dtypes has, and that is missing.
    """
    return dtype_named(_NAMES[code], where, code)


def dtype_named(name: str, where: str, code: str | None = None) -> np.dtype[Any]:
    """The dtype that NumPy or ml_dtypes calls `name`, and the file `code`."""
    if hasattr(np, name):
        return np.dtype(name).newbyteorder("<")
    try:
        import ml_dtypes
    except ImportError:
        raise RecordError(
            f"{where}: elements of type {code or name} need the package ml_dtypes; "
            f"pip install ml_dtypes"
        ) from None
    return np.dtype(getattr(ml_dtypes, name))


def name_of(code: str) -> str:
    """NumPy's or ml_dtypes' name of the elements that the format calls `code`."""
    return _NAMES[code]


def elements(
    raw: np.ndarray,
    name: str,
    where: str,
    swap: bool = False,
    code: str | None = None,
) -> np.ndarray:
    """Bytes as elements of the dtype called `name`, in one axis; a view if aligned.

    code: what the file calls them, for the message when ml_dtypes is missing.

    swap: the bytes of each element are in big-endian order. bfloat16 without
    ml_dtypes is widened to float32, which is exact.
    """
    try:
        dtype = dtype_named(name, where, code)
    except RecordError:
        if name != "bfloat16":
            raise
        wide = raw.view(">u2" if swap else "<u2").astype(np.uint32) << 16
        return wide.view(np.float32)
    if swap and dtype.itemsize > 1:
        unit = dtype.itemsize // (2 if dtype.kind == "c" else 1)
        raw = raw.reshape(-1, unit)[:, ::-1].reshape(-1)
    array = raw.view(dtype)
    return array if array.flags.aligned else array.copy()


def decode(data: Any, code: str, shape: tuple[int, ...], where: str) -> np.ndarray:
    """The array that `data` holds; shares its memory where the layout allows.

    BF16 without ml_dtypes is widened to float32, which is exact.
    """
    raw = np.frombuffer(data, np.uint8)
    bits = BITS[code]
    if bits < 8:
        return _unpack(raw, bits).view(dtype_of(code, where)).reshape(shape)
    return elements(raw, _NAMES[code], where, code=code).reshape(shape)


def encode(array: Array, where: str) -> memoryview:
    """The array's elements in C order as little-endian bytes."""
    host = on_host(array)
    code = code_of(host.dtype, where)
    if host.dtype.name in WIDER:
        host = host.astype(WIDER[host.dtype.name])
    if host.dtype.isnative is not _LITTLE and host.dtype.itemsize > 1:
        host = host.astype(host.dtype.newbyteorder("<"))
    raw: np.ndarray = np.ascontiguousarray(host).reshape(-1).view(np.uint8)
    return (_pack(raw, BITS[code]) if BITS[code] < 8 else raw).data


_LITTLE = np.dtype("<u2").isnative


def _unpack(raw: np.ndarray, bits: int) -> np.ndarray:
    """Bytes, each with one element of `bits` bits, from packed bytes."""
    single = np.unpackbits(raw, bitorder="little").reshape(-1, bits)
    return np.packbits(single, axis=1, bitorder="little").reshape(-1)


def _pack(raw: np.ndarray, bits: int) -> np.ndarray:
    """The opposite of `_unpack`."""
    single = np.unpackbits(raw[:, None], axis=1, count=bits, bitorder="little")
    return np.packbits(single.reshape(-1), bitorder="little")
