"""Named MessagePack: a map of the page, the arrays by name, and a checksum at the end.

The last value is the CRC-32 of all bytes before it, as four bytes.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, BinaryIO

from burnish.errors import RecordError
from burnish.record.elements import from_bytes, name_of, to_bytes
from burnish.record.format import Content, Format, Summed, unsealed

_END = b"\xa5crc32\xc4\x04"  # the key, and the start of four bytes
_PIECE = 1 << 30  # a value has less than 4 GiB


def _msgspec() -> ModuleType:
    try:
        import msgspec
    except ImportError:
        raise RecordError(
            "MessagePack needs the package msgspec; pip install 'burnish[record]'"
        ) from None
    return msgspec


def write(out: BinaryIO, content: Content) -> None:
    """Write a record, one array at a time."""
    encode = _msgspec().msgpack.encode
    file = Summed(out)
    file.write(_map_of(len(content.page) + 2))
    for key, value in content.page.items():
        file.write(encode(key) + encode(value))
    file.write(encode("tensors") + _map_of(len(content.arrays)))
    for name, array in content.arrays.items():
        data = to_bytes(array)
        pieces = [data[at : at + _PIECE] for at in range(0, len(data), _PIECE)]
        shape = list(array.shape)
        file.write(encode(name))
        file.write(encode({"dtype": name_of(array), "shape": shape, "bytes": pieces}))
    file.write(_END)
    out.write(file.crc.to_bytes(4, "big"))


def _map_of(count: int) -> bytes:
    """The start of a map of that many pairs (the specification's "map 32")."""
    return b"\xdf" + count.to_bytes(4, "big")


def read(data: memoryview) -> Content:
    """Read a record."""
    msgspec = _msgspec()
    unsealed(data)
    try:
        page: dict[str, Any] = msgspec.msgpack.decode(data)
        del page["crc32"]
    except (msgspec.DecodeError, RecursionError) as error:
        raise RecordError(f"expected a MessagePack map: {error}") from None
    arrays = {}
    for name, tensor in page.pop("tensors").items():
        pieces = tensor["bytes"]
        whole = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        arrays[name] = from_bytes(whole, tensor["dtype"], tensor["shape"])
    return Content(page, arrays)


FORMAT = Format(
    "MessagePack", ".mpk", lambda head: head.startswith(b"\xdf"), write, read
)
