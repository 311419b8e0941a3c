"""Named MessagePack: a map of the page, the arrays by name, and a checksum at the end.

The last value is the CRC-32 of all bytes before it, as four bytes.
"""

from __future__ import annotations

from types import ModuleType
from typing import Annotated, Any, BinaryIO

from burnish._files.budget import Budget
from burnish.errors import RecordError
from burnish.record.elements import from_bytes, name_of, to_bytes
from burnish.record.format import Content, Format, Summed, unsealed

_END = b"\xa5crc32\xc4\x04"  # the key, and the start of four bytes
_TREE = 72  # bytes of memory that a byte of plain values may take: an empty map
_TENSOR = 200
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


def read(data: memoryview, budget: Budget) -> Content:
    """Read a record by its schema, so that a hostile one allocates little."""
    msgspec = _msgspec()
    unsealed(data)
    budget.take(len(data))
    try:
        record = msgspec.msgpack.decode(data, type=_record(msgspec))
        page: dict[str, Any] = {"version": record.version}
        if len(record.dtypes):
            page["dtypes"] = record.dtypes
        if len(record.item):
            budget.take(_TREE * len(record.item))
            page["item"] = msgspec.msgpack.decode(record.item)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RecordError(f"expected a MessagePack map: {error}") from None
    arrays = {}
    for name, tensor in record.tensors.items():
        pieces = tensor.bytes
        budget.take(_TENSOR + (sum(map(len, pieces)) if len(pieces) > 1 else 0))
        whole = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        arrays[name] = from_bytes(whole, tensor.dtype, tensor.shape)
    return Content(page, arrays)


def _record(msgspec: ModuleType) -> Any:
    """The struct of a record, as msgspec checks it."""
    short = msgspec.Meta(max_length=64)
    parts = msgspec.Meta(max_length=1 << 12)
    tensor = msgspec.defstruct(
        "Tensor",
        [
            ("dtype", str),
            ("shape", Annotated[list[int], short]),
            ("bytes", Annotated[list[bytes], parts]),
        ],
    )
    return msgspec.defstruct(
        "Record",
        [
            ("version", int),
            ("tensors", dict[str, tensor]),  # type: ignore[valid-type]
            ("crc32", bytes),
            ("item", msgspec.Raw, msgspec.Raw()),
            ("dtypes", dict[str, str], {}),
        ],
    )


FORMAT = Format(
    "MessagePack", ".mpk", lambda head: head.startswith(b"\xdf"), write, read, 2
)
