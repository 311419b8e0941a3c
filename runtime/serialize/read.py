"""Reading: the header is checked at once, values come in when they are used."""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import numpy as np

from burnish.errors import RecordError
from burnish.serialize.elements import decode
from burnish.serialize.header import Header, read_header

Path: TypeAlias = str | os.PathLike[str]


def load_file(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file by name, read-only.

    They are mapped into memory: what is never touched is never read. Raises RecordError
    when the file is damaged.
    """
    data = _map(path)
    return _tensors(data, os.fspath(path))


def from_bytes(data: bytes | bytearray | memoryview) -> dict[str, np.ndarray]:
    """The tensors that safetensors bytes hold; they share the memory of `data`."""
    return _tensors(data, "safetensors bytes")


def header(path: Path) -> Header:
    """What a file holds, without its values: dtypes, shapes, metadata."""
    data = _map(path)
    return read_header(data, len(data), os.fspath(path))


def _tensors(data: Any, where: str) -> dict[str, np.ndarray]:
    entries, _, begin = read_header(data, len(data), where)
    view = memoryview(data).toreadonly()[begin:]
    found = {}
    for name, entry in entries.items():
        here = f"{where}: tensor {name!a}"
        part = view[entry.start : entry.stop]
        try:
            found[name] = decode(part, entry.dtype, entry.shape, here)
        except RecordError:
            raise
        except ValueError as error:
            raise RecordError(
                f"{here}: shape {list(entry.shape)} is too large: {error}"
            ) from None
    return found


def _map(path: Path) -> Any:
    """The bytes of a file, mapped where the platform can."""
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return b""
        try:
            import mmap
        except ImportError:
            return file.read()
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
