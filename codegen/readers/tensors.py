"""Lazy tensors: data stays in the file and is memory-mapped on first use."""

from __future__ import annotations

import math
import mmap
import os
import weakref
from pathlib import Path
from typing import BinaryIO

import numpy as np
import onnx_ir as ir

CHUNK = 1 << 20


class MappedFile:
    """A file mapped read-only once, however many tensors it holds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            self.size = os.fstat(file.fileno()).st_size
            self.data: mmap.mmap | bytes = (
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                if self.size
                else b""
            )

    def release(self, offset: int, length: int) -> None:
        """Give one range's pages back to the system; they are read again if used."""
        if isinstance(self.data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            start = offset - offset % mmap.PAGESIZE
            self.data.madvise(mmap.MADV_DONTNEED, start, offset + length - start)


class FileTensor(ir.LazyTensor):
    """A tensor at (offset, length) of a file: `numpy()` is a view of the memory map.

    When the last array made from it goes, its pages leave this process's resident
    memory too, so going through all weights never holds more than one. `tofile` streams
    past the map.
    """

    def __init__(
        self,
        file: MappedFile,
        offset: int,
        length: int,
        dtype: ir.DataType,
        shape: ir.Shape,
        name: str | None,
    ) -> None:
        super().__init__(self._view, dtype, shape, name=name)
        self.file, self.offset, self.length = file, offset, length

    def _view(self) -> ir.Tensor[np.ndarray]:
        dtype = self.dtype.numpy()
        packed = self.dtype.bitwidth < 8
        flat = np.frombuffer(
            self.file.data,
            np.uint8 if packed else dtype.newbyteorder("<"),
            self.length if packed else self.length // dtype.itemsize,
            self.offset,
        )
        release = weakref.finalize(flat, self.release)
        release.atexit = False
        dims = self.shape.numpy()
        array = _unpack(flat, self.dtype, dims) if packed else flat.reshape(dims)
        return ir.Tensor(array, self.dtype, shape=self.shape, name=self.name)

    def tofile(self, file: BinaryIO) -> None:
        """Write the bytes in pieces, past the memory map."""
        with self.file.path.open("rb") as source:
            source.seek(self.offset)
            left = self.length
            while left:
                piece = source.read(min(CHUNK, left))
                if not piece:
                    raise OSError(f"{self.file.path}: became shorter while it was read")
                file.write(piece)
                left -= len(piece)

    def release(self) -> None:
        """Take this tensor's pages out of resident memory."""
        self.file.release(self.offset, self.length)


def _unpack(flat: np.ndarray, dtype: ir.DataType, dims: tuple[int, ...]) -> np.ndarray:
    """Elements narrower than a byte, lowest bits first, as one byte each."""
    width, count = dtype.bitwidth, math.prod(dims)
    bits = np.unpackbits(flat, bitorder="little")[: count * width]
    values = np.packbits(bits.reshape(count, width), axis=1, bitorder="little")
    return values.reshape(dims).view(dtype.numpy())
