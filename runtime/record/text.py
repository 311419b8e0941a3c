"""JSON that people read: a line for each row of an array, numbers as short as they go.

The last field is the CRC-32 of all text before its digits. A file that was edited loads
again when that field is taken out.
"""

from __future__ import annotations

import base64
import json
import math
import re
from typing import Any, BinaryIO

import numpy as np

from burnish._files import jsontext
from burnish._files.budget import Budget
from burnish.errors import RecordError
from burnish.nn.core.fit import is_float
from burnish.record.elements import dtype_called, from_bytes, name_of, to_bytes
from burnish.record.format import Content, Format, Summed, check_sum

_OWN = (np.float16, np.float32, np.float64)
#: Many numbers, which are read apart: as values of Python they take much memory.
_NUMBERS = re.compile(rb'("data":\s*)(\[[-+0-9.eE,\s\[\]]{10000,}\])')
_END = re.compile(rb'"crc32": "([0-9a-f]{8})"\n}\n\Z')


def write(out: BinaryIO, content: Content) -> None:
    """Write a record, one array at a time."""
    file = Summed(out)
    file.write(b"{\n")
    for key, value in content.page.items():
        text = json.dumps(value, indent=2).replace("\n", "\n  ")
        file.write(f'  "{key}": {text},\n'.encode())
    file.write(b'  "tensors": {')
    between = "\n"
    for name, array in content.arrays.items():
        file.write(f"{between}    {json.dumps(name)}: {_text(array)}".encode())
        between = ",\n"
    file.write(b'\n  },\n  "crc32": "')
    out.write(b'%08x"\n}\n' % file.crc)


def _text(array: np.ndarray) -> str:
    head = json.dumps({"dtype": name_of(array), "shape": array.shape})[:-1]
    key, value = _values(array)
    text = json.dumps(value)
    if array.ndim > 1:
        text = text.replace("], ", "],\n      ")
    return f'{head}, "{key}": {text}}}'


def _values(array: np.ndarray) -> tuple[str, Any]:
    """Numbers in nested lists; dtypes that JSON lacks as bytes in base64."""
    wide = array
    if is_float(array.dtype):
        with np.errstate(invalid="ignore"):  # a signalling NaN
            wide = array.astype("float64")
        if np.isfinite(wide).all():
            if array.dtype.type in _OWN:
                # 0.1 for a float32, not 0.10000000149011612, wherever that is the same
                short = array.astype(str).astype("float64")
                wide = np.where(short.astype(array.dtype) == array, short, wide)
            return "data", wide.tolist()
    elif array.dtype.kind in "biu":
        return "data", wide.tolist()
    return "base64", base64.b64encode(to_bytes(array)).decode()


def read(data: memoryview, budget: Budget) -> Content:
    """Read a record; one without a checksum is taken as it is."""
    budget.take(len(data))
    text = bytes(data)
    end = _END.search(text, max(0, len(text) - 32))
    if end:
        check_sum(data[: end.start(1)], int(end[1], 16))
    numbers: list[bytes] = []

    def escaped(found: re.Match[bytes]) -> bytes:
        numbers.append(found[2])
        return b'%s{"$numbers": %d}' % (found[1], len(numbers) - 1)

    page: dict[str, Any] = jsontext.parse(_NUMBERS.sub(escaped, text), budget)
    if page.pop("crc32", None) is not None and not end:
        raise RecordError(
            "expected the checksum as the last line, as it was written; take the field "
            "crc32 out of a file that was edited"
        )
    tensors = page.pop("tensors")
    arrays = {n: _array(each, numbers, budget) for n, each in tensors.items()}
    return Content(page, arrays)


def _array(tensor: dict[str, Any], numbers: list[bytes], budget: Budget) -> np.ndarray:
    shape = tuple(tensor["shape"])
    if "base64" in tensor:
        data = base64.b64decode(tensor["base64"], validate=True)
        return from_bytes(data, tensor["dtype"], shape)
    dtype = dtype_called(tensor["dtype"])
    wide = np.dtype("float64") if is_float(dtype) else dtype
    data = tensor["data"]
    if isinstance(data, dict):
        array = _parsed(numbers[data["$numbers"]], wide, shape, budget)
    else:
        array = np.array(data, wide)
    if array.shape != shape and array.size + np.prod(shape) > 0:
        raise RecordError(f"expected data of shape {shape}, got {array.shape}")
    return array.reshape(shape).astype(dtype, copy=False)


def _parsed(
    text: bytes, dtype: np.dtype, shape: tuple[int, ...], budget: Budget
) -> np.ndarray:
    """Numbers in nested lists, read without a Python object for each of them."""
    budget.take(len(text) + dtype.itemsize * (1 + text.count(b",")))
    flat: Any = np.fromstring(text.translate(None, b"[] \n"), dtype, sep=",")
    if flat.size != math.prod(shape):
        raise RecordError(f"expected {math.prod(shape)} numbers, got {flat.size}")
    return flat.reshape(shape)


def _begins(head: bytes) -> bool:
    return head.lstrip()[:1] == b"{"


FORMAT = Format("JSON", ".json", _begins, write, read, 5)
