"""A format: how arrays by name and the page about them are written and read."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple, TypeAlias

from burnish._files.budget import Budget
from burnish.errors import RecordError
from burnish.record.elements import Arrays

Page: TypeAlias = dict[str, Any]
"""Plain values that JSON can hold: "version", "item", "dtypes"."""


class Content(NamedTuple):
    """The content of a record, in every format."""

    page: Page
    arrays: Arrays


class Format(NamedTuple):
    """One way to write a record. Readers raise ValueError and its like for damage."""

    kind: str
    suffix: str
    begins: Callable[[bytes], bool]  #: whether a file may start with these 64 bytes
    write: Callable[[BinaryIO, Content], None]
    read: Callable[[memoryview, Budget], Content]
    cost: int = 1  #: bytes of memory that reading a byte takes


class Summed:
    """A file that keeps the CRC-32 of the bytes written to it."""

    def __init__(self, out: BinaryIO):
        self.out = out
        self.crc = 0

    def write(self, data: Any) -> None:
        self.crc = zlib.crc32(data, self.crc)
        self.out.write(data)


def check_sum(data: Any, expected: int, before: bytes = b"") -> None:
    """Raise RecordError unless this is the CRC-32 of `before` and `data`."""
    if (found := zlib.crc32(data, zlib.crc32(before))) != expected:
        raise RecordError(
            f"expected contents with the checksum {expected:08x}, got {found:08x}; the "
            f"file is damaged"
        )


def unsealed(data: memoryview) -> memoryview:
    """`data` without the checksum that its last four bytes are, which is checked."""
    check_sum(data[:-4], int.from_bytes(data[-4:], "big"))
    return data[:-4]
