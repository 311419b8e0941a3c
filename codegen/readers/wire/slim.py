"""A ModelProto's bytes without its big tensors and lists: nothing large is copied.

Parsing a protobuf copies every `raw_data`, so a 1 GB file would cost 1 GB before the
first node is seen. `slim` walks the wire format over a memory map and rewrites each
large tensor as external data that points back into the same file. Of an attribute with
many elements the doc_string names the table that has them.
"""

from __future__ import annotations

from collections import Counter

from burnish.codegen.readers.wire import elements
from burnish.codegen.readers.wire.elements import Table
from burnish.codegen.readers.wire.fields import (
    BYTES,
    VARINT,
    Buffer,
    WireError,
    fields,
)

#: The location that replaces a removed tensor's data. No file name can hold a NUL.
SELF = "\0model"
#: Messages below this size are copied whole: they cannot hold a large tensor.
LARGE = 1024
#: Protobuf's own limit on nesting.
MAX_DEPTH = 100
#: Parts of one kind: each becomes an object, however small.
MOST = 200_000
_OBJECTS = frozenset(("Model", "Graph", "Node", "Function"))

_RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 9, 13, 14
_DOC_STRING = 13
#: An attribute's floats, integers and strings, each element a field: millions in trees.
_ELEMENTS = frozenset(elements.NAMES)
#: Bytes of elements from which on they become a table.
TABLE = 1 << 12

#: Message -> field number -> message that may hold tensors. Sparse ones stay.
_NESTED: dict[str, dict[int, str]] = {
    "Model": {7: "Graph", 25: "Function"},
    "Graph": {1: "Node", 5: "Tensor"},
    "Node": {5: "Attribute"},
    "Attribute": {5: "Tensor", 6: "Graph", 10: "Tensor", 11: "Graph"},
    "Default": {5: "Tensor", 6: "Graph", 10: "Tensor", 11: "Graph"},
    "Function": {7: "Node", 11: "Default"},
    "Tensor": {},
}
#: Fields left out: training_info is not imported.
_DROPPED = {"Model": {20}}


class TooManyError(WireError):
    """A message with more parts of a kind than any model has."""


def slim(data: Buffer) -> tuple[bytes, dict[int, Table]]:
    """The ModelProto in `data`, with every large raw_data and long list cut out.

    The lists are tables, by their numbers.
    """
    tables: dict[int, Table] = {}
    return b"".join(_slim(data, 0, len(data), "Model", 0, tables)), tables


def _slim(
    data: Buffer,
    at: int,
    end: int,
    message: str,
    depth: int,
    tables: dict[int, Table],
) -> list[bytes]:
    if depth > MAX_DEPTH:
        raise WireError(f"messages are nested more than {MAX_DEPTH} deep")
    nested, dropped = _NESTED[message], _DROPPED.get(message, ())
    parts: list[bytes] = []
    tail = b""
    kept = at
    counts = Counter[int]()
    for number, kind, start, value, stop in fields(data, at, end):
        if message in ("Attribute", "Default") and number in _ELEMENTS:
            made = None
            if message == "Attribute" and end - start >= TABLE:
                made = elements.cut(data, start, value, stop, end, number, kind)
            if made is None:
                break  # a list has no tensors, and the rest is kept as it is
            table, rest = made
            reference = _text(_DOC_STRING, f"{elements.MARK}{len(tables)}")
            tables[len(tables)] = table
            return [*parts, data[kept:start], rest, reference]
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
            inner = _slim(data, value, stop, nested[number], depth + 1, tables)
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
