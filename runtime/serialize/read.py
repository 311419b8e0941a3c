"""Reading: the header is checked at once, values come in when they are used."""

from __future__ import annotations

import os
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from burnish._files.budget import Budget
from burnish._files.shown import shown
from burnish.errors import RecordError
from burnish.serialize.elements import BITS, decode, name_of
from burnish.serialize.header import Entry, Header, read_header
from burnish.serialize.lazy import LazyTensor

Path: TypeAlias = str | os.PathLike[str]


def load_file(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file by name, read-only.

    They are mapped into memory: untouched pages are not read. Raises RecordError when
    the file is damaged.
    """
    data = map_file(path)
    return _tensors(data, os.fspath(path))


def from_bytes(data: bytes | bytearray | memoryview) -> dict[str, np.ndarray]:
    """The tensors that safetensors bytes hold; they share the memory of `data`."""
    return _tensors(data, "safetensors bytes")


def header(path: Path) -> Header:
    """A file's header: dtypes, shapes, metadata."""
    data = map_file(path)
    return read_header(data, Budget(len(data), os.fspath(path)))


class SafeTensor(LazyTensor):
    """A tensor of a safetensors file."""

    __slots__ = ("entry", "file", "name", "view")

    def __init__(self, name: str, entry: Entry, view: memoryview, file: str):
        super().__init__(name_of(entry.dtype), entry.shape)
        self.name = name
        self.entry = entry
        self.view = view
        self.file = file

    def read(self) -> np.ndarray:
        part = self.view[self.entry.start : self.entry.stop]
        where = f"{self.file}: tensor {shown(self.name)}"
        try:
            return decode(part, self.entry.dtype, self.shape, where)
        except RecordError:
            raise
        except ValueError as error:
            raise RecordError(
                f"{where}: shape {list(self.shape)} is too large: {error}"
            ) from None

    def _bits(self) -> int:
        return BITS[self.entry.dtype]


class Lazy(NamedTuple):
    """A file's tensors, none of them read, and its metadata."""

    tensors: dict[str, SafeTensor]
    metadata: dict[str, str]


def lazy(data: Any, budget: Budget) -> Lazy:
    """The tensors that safetensors bytes hold; the header is checked now."""
    entries, metadata, begin = read_header(data, budget)
    file = budget.where
    view = memoryview(data).toreadonly()[begin:]
    tensors = {
        name: SafeTensor(name, entry, view, file) for name, entry in entries.items()
    }
    return Lazy(tensors, metadata)


def _tensors(data: Any, where: str) -> dict[str, np.ndarray]:
    held = lazy(data, Budget(len(data), where)).tensors
    return {name: tensor.read() for name, tensor in held.items()}


def map_file(path: Path) -> Any:
    """The bytes of a file, mapped where the platform can."""
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return b""
        try:
            import mmap
        except ImportError:
            return file.read()
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def release(array: np.ndarray) -> None:
    """Let go of the memory of a mapped file's pages; reading them brings them back.

    An array that is no part of a file that `map_file` mapped stays as it is.
    """
    held: Any = array
    while isinstance(held, np.ndarray | memoryview):
        held = held.base if isinstance(held, np.ndarray) else held.obj
    if not array.flags.c_contiguous or not hasattr(held, "madvise"):
        return
    import mmap

    start = array.ctypes.data - np.frombuffer(held, np.uint8).ctypes.data
    first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
    size = (start + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE - first
    if size > 0 and hasattr(mmap, "MADV_DONTNEED"):  # the mapping is read-only
        held.madvise(mmap.MADV_DONTNEED, first, size)
