"""Check that a tensor's data is as long as its shape and dtype say."""

from __future__ import annotations

import math
from typing import Any

import onnx
import onnx_ir as ir

from burnish.codegen.errors import ReadError
from burnish.codegen.symbolic.sizes import MOST_DIMS

_EXTERNAL = onnx.TensorProto.EXTERNAL
_EXTERNAL_KEYS = frozenset(("location", "offset", "length"))
_DIGITS = 20  # a file is smaller than a number of so many
#: Elements, zeros counted as ones; more is damage, no tensor and no array of NumPy's.
_LIMIT = 1 << 40


def check_tensor(where: str, tensor: Any) -> None:
    """Check the length of inline data against shape and dtype."""
    try:
        dtype = ir.DataType(tensor.data_type)
        known = dtype is not ir.DataType.UNDEFINED
    except ValueError:
        known = False
    if not known:
        raise ReadError(f"{where}: data type {tensor.data_type} does not exist")
    dims = list(tensor.dims)
    if len(dims) > MOST_DIMS:
        raise ReadError(
            f"{where}: expected at most {MOST_DIMS} dimensions, got {len(dims)}"
        )
    if min(dims, default=0) < 0 or math.prod(d or 1 for d in dims) > _LIMIT:
        raise ReadError(f"{where}: {dims} is no shape; the file is damaged")
    if tensor.HasField("segment"):
        raise ReadError(f"{where}: expected a whole tensor, got a segment of one")
    if tensor.data_location == _EXTERNAL:
        _check_external(where, tensor)
        return
    expected, got = math.prod(dims), _count(tensor, dtype)
    if got != expected:
        raise ReadError(
            f"{where}: expected {expected} elements for shape {dims}, got {got}; "
            "the file is damaged"
        )


def _check_external(where: str, tensor: Any) -> None:
    """Offset and length are numbers that a file can have; unknown keys are dropped."""
    known = {e.key: e.value for e in tensor.external_data if e.key in _EXTERNAL_KEYS}
    del tensor.external_data[:]
    for key, value in known.items():
        number = value.isascii() and value.isdecimal() and len(value) < _DIGITS
        if key in ("offset", "length") and not number:
            raise ReadError(
                f"{where}: expected the {key} of its external data to be a number of "
                f"bytes, got {value[:40]!r}"
            )
        tensor.external_data.add(key=key, value=value)


def _count(tensor: Any, dtype: ir.DataType) -> int:
    """The number of elements in the tensor's data."""
    if dtype is ir.DataType.STRING:
        return len(tensor.string_data)
    if tensor.HasField("raw_data"):
        size, held = math.prod(tensor.dims), len(tensor.raw_data)
        exact = held == math.ceil(size * dtype.bitwidth / 8)
        return size if exact else held * 8 // dtype.bitwidth
    field = onnx.helper.tensor_dtype_to_field(int(dtype))
    count = len(getattr(tensor, field))
    if dtype in (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128):
        return count // 2
    if dtype.bitwidth < 8:
        size = math.prod(tensor.dims)
        return size if count == math.ceil(size * dtype.bitwidth / 8) else count
    return count
