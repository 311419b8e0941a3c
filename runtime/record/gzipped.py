"""Any format in gzip, which has a CRC-32 of its own."""

from __future__ import annotations

import gzip
import zlib
from typing import Any, BinaryIO, cast

from burnish.errors import RecordError
from burnish.record.format import Content, Format


def gzipped(inner: Format) -> Format:
    """The format that is `inner` in gzip; the same record gives the same bytes."""

    def write(out: BinaryIO, content: Content) -> None:
        with gzip.GzipFile("", "wb", 6, out, mtime=0) as file:
            inner.write(cast(Any, file), content)

    def read(data: memoryview) -> Content:
        try:
            whole = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise RecordError(f"expected a whole gzip stream: {error}") from None
        if not inner.begins(whole[:64]):
            raise RecordError(f"expected {inner.kind} in gzip, got {whole[:8]!r}")
        return inner.read(memoryview(whole))

    return Format(
        f"{inner.kind} in gzip",
        f"{inner.suffix}.gz",
        lambda head: head.startswith(b"\x1f\x8b"),
        write,
        read,
    )
