"""Safetensors with a checksum in its metadata; any program that knows it reads it.

The checksum is of the whole file, its own eight digits taken as zeros. It is the first
thing in the header, so that its place is known.
"""

from __future__ import annotations

import json
import zlib
from typing import BinaryIO

from burnish._files import jsontext
from burnish._files.budget import Budget
from burnish.record.elements import Arrays
from burnish.record.format import Content, Format, check_sum
from burnish.serialize.elements import code_of, encode
from burnish.serialize.header import MAX_HEADER, layout
from burnish.serialize.read import lazy

_BEFORE = b'{"__metadata__":{"burnish.crc32":"'
_AT = 8 + len(_BEFORE)
_ZEROS = b"00000000"


def write(out: BinaryIO, content: Content) -> None:
    """Write a record; complex128 is refused, the format has no name for it."""
    rows = [
        (name, code_of(array.dtype, f"array {name!r}"), array.shape)
        for name, array in content.arrays.items()
    ]
    page = json.dumps(content.page)
    metadata = {"burnish.crc32": _ZEROS.decode(), "burnish.record": page}
    head, entries = layout(rows, metadata, "record")
    crc = zlib.crc32(head)
    for name in entries:
        crc = zlib.crc32(encode(content.arrays[name], name), crc)
    out.write(head[:_AT] + b"%08x" % crc + head[_AT + 8 :])
    for name in entries:
        out.write(encode(content.arrays[name], name))


def read(data: memoryview, budget: Budget) -> Content:
    """Read a record, or a file of another program, which has no checksum."""
    if bytes(data[8:_AT]) == _BEFORE:
        _check(data)
    tensors, metadata = lazy(data, budget)
    page = metadata.get("burnish.record", '{"version": 1}')
    arrays: Arrays = {name: tensor.read() for name, tensor in tensors.items()}
    return Content(jsontext.parse(page.encode(), budget), arrays)


def _check(data: memoryview) -> None:
    head_end = 8 + int.from_bytes(data[:8], "little")
    digits = int(bytes(data[_AT : _AT + 8]), 16)
    head = bytes(data[:_AT]) + _ZEROS + bytes(data[_AT + 8 : head_end])
    check_sum(data[head_end:], digits, head)


def _begins(head: bytes) -> bool:
    return head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= MAX_HEADER


FORMAT = Format("safetensors", ".safetensors", _begins, write, read)
