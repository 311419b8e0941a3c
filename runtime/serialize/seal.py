"""Detect changes of a file by a digest in its own metadata.

It is the sha256 of the whole file, names and values, with zeros in its own place.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from typing import Any, BinaryIO, TypeAlias

from burnish._files.budget import Budget
from burnish.serialize.header import read_header
from burnish.serialize.read import header

Path: TypeAlias = str | os.PathLike[str]

SEAL = "burnish.sha256"
"""The key under which generated weights have their digest."""

UNSEALED = "0" * 64
_PIECE = 1 << 20


class Hashed:
    """A file that is written from its start, and what its bytes hash to."""

    def __init__(self, file: BinaryIO):
        self.file = file
        self.head = b""
        self.hash = _sha256()

    def write(self, data: Any) -> int:
        self.head = self.head or bytes(data)
        self.hash.update(data)
        return self.file.write(data)

    def place(self, key: str) -> int:
        """The offset of the digest."""
        return _place(self.head, key, UNSEALED)

    def hexdigest(self) -> bytes:
        return self.hash.hexdigest().encode()


def is_sealed(source: Path | bytes, key: str) -> bool:
    """Whether a safetensors file, or its bytes, is as it was when it got its digest.

    key: the metadata that holds it. Raises RecordError for a damaged file.
    """
    digest = metadata(source).get(key, "")
    with (
        io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb") as file
    ):
        head = file.read(8)
        head += file.read(int.from_bytes(head, "little"))
        start = _place(head, key, digest)
        if start < 0 or len(digest) != len(UNSEALED):
            return False
        found = _sha256()
        found.update(head[:start] + UNSEALED.encode() + head[start + len(digest) :])
        while piece := file.read(_PIECE):
            found.update(piece)
    return found.hexdigest() == digest


def _opened(source: Path | bytes) -> BinaryIO:
    return io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb")


def is_broken(source: Path | bytes) -> bool:
    """Whether a file that got a digest when it was generated has changed since.

    One without a digest, as `save_file` writes it, is not.
    """
    return SEAL in metadata(source) and not is_sealed(source, SEAL)


def metadata(source: Path | bytes) -> Mapping[str, str]:
    """The metadata of a safetensors file."""
    if not isinstance(source, bytes):
        return header(source).metadata
    data = memoryview(source)
    return read_header(data, Budget(len(data), "weights")).metadata


def _place(head: bytes, key: str, digest: str) -> int:
    """The offset of a digest in a header; -1 where it is not as written."""
    before = f'"{key}":"'.encode()
    start = head.find(before + digest.encode() + b'"')
    return start if start < 0 else start + len(before)


def _sha256() -> Any:
    import hashlib

    return hashlib.sha256()
