"""The IDX format of MNIST, plain or gzip-compressed.

Format: two zero bytes, a byte for the element type, a byte for the number of axes, one
big-endian 32-bit size an axis, then the elements, big-endian too
(yann.lecun.com/exdb/mnist).
"""

from __future__ import annotations

import math
import os
import zlib
from typing import Any, BinaryIO

import numpy as np

from burnish.errors import RecordError

_TYPES = {
    0x08: ">u1",
    0x09: ">i1",
    0x0B: ">i2",
    0x0C: ">i4",
    0x0D: ">f4",
    0x0E: ">f8",
}
_MOST = 1032  # deflate cannot make a byte of more than these


def read_idx(path: str | os.PathLike[str]) -> np.ndarray:
    """The array that an IDX file holds, in native byte order.

    Compression is detected by the content, not by the name. Raises RecordError when the
    file is damaged.
    """
    where, size = os.fspath(path), os.path.getsize(path)
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if not packed:
            return _read(file, size, where)
        import gzip

        try:
            with gzip.open(file) as unpacked:
                return _read(unpacked, size * _MOST, where)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise RecordError(
                f"{where}: expected a whole gzip file, got damage: {error}"
            ) from None


def _read(file: Any, most: int, where: str) -> np.ndarray:
    start = _take(file, 4, where)
    if start[:2] != b"\0\0" or start[2] not in _TYPES:
        raise RecordError(
            f"{where}: expected an IDX file, which starts with 00 00 and one of "
            f"{bytes(_TYPES).hex(' ')}, got {start[:3].hex(' ')}"
        )
    dtype, axes = np.dtype(_TYPES[start[2]]), start[3]
    sizes = np.frombuffer(_take(file, 4 * axes, where), ">u4")
    shape = tuple(int(n) for n in sizes)
    need = math.prod(shape) * dtype.itemsize
    if axes > 64:
        raise RecordError(f"{where}: expected at most 64 axes, got {axes}")
    if need > most:
        raise RecordError(
            f"{where}: expected {need} bytes for shape {shape}, got at most {most}"
        )
    array = np.frombuffer(_take(file, need, where), dtype)
    if file.read(1):
        raise RecordError(f"{where}: expected the end after {need} bytes, got more")
    try:
        return array.astype(dtype.newbyteorder("=")).reshape(shape)
    except ValueError:
        raise RecordError(f"{where}: shape {shape} is too large") from None


def _take(file: BinaryIO, count: int, where: str) -> bytes:
    found = file.read(count)
    if len(found) != count:
        raise RecordError(f"{where}: expected {count} more bytes, got {len(found)}")
    return found
