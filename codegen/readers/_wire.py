"""A ModelProto's bytes without its big tensors: nothing large is ever copied.

Parsing a protobuf copies every `raw_data`, so a 1 GB file would cost 1 GB before the
first node is seen. `slim` walks the wire format over a memory map and rewrites each
large tensor as external data that points back into the same file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from mmap import mmap

Buffer = bytes | mmap

#: The location that replaces a removed tensor's data. No file name can hold a NUL.
SELF = "\0model"
#: Messages below this size are copied whole: they cannot hold a large tensor.
LARGE = 1024
#: Protobuf's own limit on nesting.
MAX_DEPTH = 100
#: Parts of one kind: each becomes an object, however small.
MOST = 200_000
_OBJECTS = frozenset(("Model", "Graph", "Node", "Function"))

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 9, 13, 14
#: An attribute's floats, integers and strings, each element a field: millions in trees.
_ELEMENTS = frozenset((7, 8, 9))

#: Message -> field number -> message that may hold tensors. Sparse ones stay.
_NESTED: dict[str, dict[int, str]] = {
    "Model": {7: "Graph", 25: "Function"},
    "Graph": {1: "Node", 5: "Tensor"},
    "Node": {5: "Attribute"},
    "Attribute": {5: "Tensor", 6: "Graph", 10: "Tensor", 11: "Graph"},
    "Function": {7: "Node", 11: "Attribute"},
    "Tensor": {},
}
#: Fields left out: training_info is not imported.
_DROPPED = {"Model": {20}}


class WireError(ValueError):
    """Bytes that are not a well-formed protobuf message."""


class TooManyError(WireError):
    """A message with more parts of a kind than any model has."""


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


def slim(data: Buffer) -> bytes:
    """The ModelProto in `data`, with every large raw_data cut out."""
    return b"".join(_slim(data, 0, len(data), "Model", 0))


def _slim(data: Buffer, at: int, end: int, message: str, depth: int) -> list[bytes]:
    if depth > MAX_DEPTH:
        raise WireError(f"messages are nested more than {MAX_DEPTH} deep")
    nested, dropped = _NESTED[message], _DROPPED.get(message, ())
    parts: list[bytes] = []
    tail = b""
    kept = at
    counts = Counter[int]()
    for number, kind, start, value, stop in fields(data, at, end):
        if message == "Attribute" and number in _ELEMENTS:
            break  # of one kind: a list has no tensors, and the rest is kept as it is
        if kind != BYTES:
            continue
        counts[number] += 1
        if counts[number] > MOST and message in _OBJECTS:
            raise TooManyError(
                f"expected at most {MOST} parts of a kind in a {message}, got more in "
                f"field {number}; generate from a part of the model"
            )
        if number in dropped:
            replacement: list[bytes] = []
        elif stop - value < LARGE:
            continue
        elif number in nested:
            inner = _slim(data, value, stop, nested[number], depth + 1)
            replacement = [_header(number, sum(map(len, inner))), *inner]
        elif message == "Tensor" and number == _RAW_DATA:
            # last, where it overrides a data_location of the file's own
            replacement, tail = [], _reference(value, stop - value)
        else:
            continue
        parts += [data[kept:start], *replacement]
        kept = stop
    return [*parts, data[kept:end], tail]


def _reference(offset: int, length: int) -> bytes:
    """The external-data fields of a TensorProto that say "in the file itself"."""
    entries = {"location": SELF, "offset": str(offset), "length": str(length)}
    parts = []
    for key, value in entries.items():
        entry = _text(1, key) + _text(2, value)
        parts += [_header(_EXTERNAL_DATA, len(entry)), entry]
    return b"".join([*parts, _number(_DATA_LOCATION << 3 | VARINT), _number(1)])


def _text(number: int, text: str) -> bytes:
    return _header(number, len(text.encode())) + text.encode()


def _header(number: int, size: int) -> bytes:
    return _number(number << 3 | BYTES) + _number(size)


def _number(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
