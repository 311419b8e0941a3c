"""Deflated bytes, unpacked a piece at a time and counted as they come."""

from __future__ import annotations

import zlib
from typing import Any

from burnish._files.budget import Budget

_FIRST, _PIECE = 1 << 10, 1 << 18
RAW, GZIP = -15, 31
"""Formats of the bytes: a raw stream as in ZIP, or gzip with its checksum."""


def inflated(data: Any, budget: Budget, kind: int = RAW) -> memoryview:
    """The bytes that a stream, or of gzip one stream after another, unpacks to.

    Raises BudgetError as soon as they are too many, and ValueError for damage.
    """
    made, rest, at = bytearray(), memoryview(data), 0
    while True:
        budget.step(10)
        at = _unpacked(rest, at, made, budget, kind)
        if kind == RAW or not any(rest[at : at + _FIRST]):
            return memoryview(made).toreadonly()


def _unpacked(
    data: memoryview, at: int, made: bytearray, budget: Budget, kind: int
) -> int:
    """Unpack the stream that starts at byte `at` into `made`; where it ends."""
    unpack, reach, tail = zlib.decompressobj(kind), _FIRST, b""
    while not unpack.eof:
        if not tail and at >= len(data):
            raise ValueError("the compressed stream ends too early")
        piece: Any = tail or data[at : at + reach]
        at += 0 if tail else len(piece)
        try:
            more = unpack.decompress(piece, _PIECE)
        except zlib.error as error:
            raise ValueError(str(error)) from None
        budget.take(len(more))
        made += more
        tail, reach = unpack.unconsumed_tail, min(2 * reach, _PIECE)
        while not tail and not unpack.eof and len(more) == _PIECE:
            more = unpack.decompress(b"", _PIECE)  # what it holds back
            budget.take(len(more))
            made += more
    return at - len(unpack.unused_data)
