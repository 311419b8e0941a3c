"""Fields of a protobuf message, in the order of its bytes."""

from __future__ import annotations

from collections.abc import Iterator
from mmap import mmap

Buffer = bytes | mmap

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    """Bytes that are not a well-formed protobuf message."""


def varint(data: Buffer, at: int, end: int) -> tuple[int, int]:
    """The varint at `at` and the offset after it."""
    value = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise WireError(f"a number at byte {at} is longer than ten bytes")
    raise WireError(f"a number that starts before byte {end} goes past it")


def fields(data: Buffer, at: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
    """(field number, wire type, start of field, start of its value, end) of each."""
    while at < end:
        start = at
        key, at = varint(data, at, end)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, (_, at) = at, varint(data, at, end)
        elif kind == BYTES:
            size, value = varint(data, at, end)
            at = value + size
        elif kind in (FIXED64, FIXED32):
            value, at = at, at + (8 if kind == FIXED64 else 4)
        else:
            raise WireError(f"wire type {kind} at byte {start} is none of protobuf's")
        if number == 0:
            raise WireError(f"field number 0 at byte {start}")
        if at > end:
            raise WireError(
                f"field {number} at byte {start} needs {at - value} bytes, "
                f"{end - value} are left"
            )
        yield number, kind, start, value, at
