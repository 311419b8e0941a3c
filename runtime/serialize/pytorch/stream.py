"""The bytes of a pickle, taken from the front, and the literals in it."""

from __future__ import annotations

import codecs
import struct
from collections.abc import Callable
from typing import Any

from burnish.errors import RecordError

_LONGEST_INT = 1024  #: bytes; no program's numbers come near, and printing is quadratic
_LINES = (64, 512, 4096, 65536)  #: bytes looked at for the end of a line


class Stream:
    """A cursor in `data`; taking more than there is raises RecordError."""

    __slots__ = ("at", "data", "where")

    def __init__(self, data: memoryview, where: str, at: int = 0):
        self.data = data
        self.where = where
        self.at = at

    def take(self, count: int) -> memoryview:
        start, stop = self.at, self.at + count
        if stop > len(self.data):
            raise self.damage(f"expected {count} more bytes, got the end")
        self.at = stop
        return self.data[start:stop]

    def byte(self) -> int:
        """The next byte, which is most of what there is to take."""
        at = self.at
        if at >= len(self.data):
            raise self.damage("expected 1 more bytes, got the end")
        self.at = at + 1
        return self.data[at]

    def number(self, count: int) -> int:
        """An unsigned little-endian integer of `count` bytes."""
        return int.from_bytes(self.take(count), "little")

    def signed(self, count: int) -> int:
        return int.from_bytes(self.take(count), "little", signed=True)

    def line(self) -> bytes:
        """The bytes up to the next line end, which is passed over."""
        for reach in _LINES:
            rest = bytes(self.data[self.at : self.at + reach])
            if (length := rest.find(b"\n")) >= 0:
                self.at += length + 1
                return rest[:length]
        raise self.damage(f"expected a line of at most {_LINES[-1]} bytes")

    def damage(self, problem: str) -> RecordError:
        return RecordError(f"{self.where}: pickle at byte {self.at}: {problem}")


def text(raw: Any, stream: Stream) -> str:
    """UTF-8, lone surrogates let through as pickle does."""
    try:
        return str(raw, "utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise stream.damage("expected text in UTF-8") from None


def native(raw: Any) -> str | bytes:
    """A string of Python 2, where text and bytes were one type."""
    try:
        return str(raw, "ascii")
    except UnicodeDecodeError:
        return bytes(raw)


def _sized(width: int, make: Callable[[Any, Stream], Any]) -> Callable[[Stream], Any]:
    return lambda stream: make(stream.take(stream.number(width)), stream)


def _integer_line(stream: Stream) -> int | bool:
    line = stream.line()
    if line in (b"00", b"01"):
        return line == b"01"
    try:
        return int(line.removesuffix(b"L"), 0) if len(line) < 2500 else int(b"")
    except ValueError:
        raise stream.damage(f"expected an integer, got {line[:20]!r}") from None


def _float_line(stream: Stream) -> float:
    line = stream.line()
    try:
        return float(line)
    except ValueError:
        raise stream.damage(f"expected a number, got {line[:20]!r}") from None


def _quoted_line(stream: Stream) -> str | bytes:
    line = stream.line().strip()
    if len(line) < 2 or line[:1] != line[-1:] or line[:1] not in (b'"', b"'"):
        raise stream.damage("expected a quoted string")
    try:
        return native(codecs.escape_decode(line[1:-1])[0])
    except ValueError:
        raise stream.damage("expected a quoted string") from None


def _escaped_line(stream: Stream) -> str:
    try:
        return str(stream.line(), "raw-unicode-escape")
    except UnicodeDecodeError:
        raise stream.damage("expected escaped text") from None


def _long(width: int) -> Callable[[Stream], int]:
    def read(stream: Stream) -> int:
        count = stream.number(width)
        if count > _LONGEST_INT:
            raise stream.damage(
                f"expected an integer of a sane size, got {count} bytes"
            )
        return stream.signed(count)

    return read


def _double(stream: Stream) -> float:
    number: float = struct.unpack(">d", stream.take(8))[0]
    return number


def _bytes(raw: Any, stream: Stream) -> bytes:
    return bytes(raw)


def _bytearray(raw: Any, stream: Stream) -> bytearray:
    return bytearray(raw)


def _native(raw: Any, stream: Stream) -> str | bytes:
    return native(raw)


LITERALS: dict[int, Callable[[Stream], Any]] = {
    ord("I"): _integer_line,
    ord("L"): _integer_line,
    ord("F"): _float_line,
    ord("S"): _quoted_line,
    ord("V"): _escaped_line,
    ord("J"): lambda stream: stream.signed(4),
    ord("K"): Stream.byte,
    ord("M"): lambda stream: stream.number(2),
    ord("G"): _double,
    ord("T"): _sized(4, _native),
    ord("U"): _sized(1, _native),
    ord("X"): _sized(4, text),
    ord("B"): _sized(4, _bytes),
    ord("C"): _sized(1, _bytes),
    ord("N"): lambda stream: None,
    ord(")"): lambda stream: (),
    ord("]"): lambda stream: [],
    ord("}"): lambda stream: {},
    0x88: lambda stream: True,
    0x89: lambda stream: False,
    0x8A: _long(1),
    0x8B: _long(4),
    0x8C: _sized(1, text),
    0x8D: _sized(8, text),
    0x8E: _sized(8, _bytes),
    0x8F: lambda stream: set(),
    0x96: _sized(8, _bytearray),
}
"""Opcodes that push one value made of the bytes after them."""
