"""The binary format: a short header, then every array's bytes, nothing around them.

"BURNISH1", the header's length in 8 bytes, the header in JSON, the arrays' bytes, each
at a multiple of 8, and at the end the CRC-32 of all that.
"""

from __future__ import annotations

import json
from typing import BinaryIO

from burnish._files import jsontext
from burnish._files.budget import Budget
from burnish.errors import RecordError
from burnish.record.elements import from_bytes, name_of, size_of, to_bytes
from burnish.record.format import Content, Format, Summed, unsealed

_MAGIC = b"BURNISH1"


def write(out: BinaryIO, content: Content) -> None:
    """Write a record."""
    rows = [
        [name, name_of(array), array.shape] for name, array in content.arrays.items()
    ]
    head = json.dumps([content.page, rows], separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    file = Summed(out)
    file.write(_MAGIC + len(head).to_bytes(8, "little") + head)
    for array in content.arrays.values():
        data = to_bytes(array)
        file.write(data)
        file.write(bytes(-len(data) % 8))
    out.write(file.crc.to_bytes(4, "big"))


def read(data: memoryview, budget: Budget) -> Content:
    """Read a record; its arrays share the memory of `data`."""
    data = unsealed(data)
    start = 16 + int.from_bytes(data[8:16], "little")
    page, rows = jsontext.parse(data[16:start], budget)
    arrays = {}
    for name, dtype, shape in rows:
        stop = start + size_of(dtype, shape)
        arrays[name] = from_bytes(data[start:stop], dtype, shape)
        start = stop + -stop % 8
    if start != len(data):
        raise RecordError(
            f"expected {start} bytes before the checksum, got {len(data)}"
        )
    return Content(page, arrays)


FORMAT = Format("binary", ".bin", lambda head: head.startswith(_MAGIC), write, read)
