"""Attributes of many numbers or words as arrays, decoded from the file's bytes.

Protobuf and the Graph make an object of each element, and ensembles of trees have
millions. Unpacked fields (a tag before each element, as ONNX's proto2 writes them) and
packed ones are read; several runs of one attribute are left to protobuf.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import onnx

from burnish.codegen.readers.wire.fields import BYTES, Buffer, WireError, fields

NAMES = {7: "floats", 8: "ints", 9: "strings"}
"""AttributeProto's fields of many elements."""

_FLOATS, _INTS, _STRINGS = NAMES

MARK = "\0table "
"""How the doc_string begins of an attribute whose elements are in a table."""

_CHUNK = 1 << 22
_FLOAT_TAG, _INT_TAG = _FLOATS << 3 | 5, _INTS << 3
_MOST_BYTES = 10  # of a varint


class Table(NamedTuple):
    """An attribute's elements: an array of numbers, or a tuple of words."""

    field: str
    values: Any


def table_of(attribute: Any) -> int | None:
    """The number of the table that has an attribute's elements; None for none."""
    text = attribute.doc_string or ""
    return int(text[len(MARK) :]) if text.startswith(MARK) else None


def cut(
    data: Buffer, start: int, value: int, stop: int, end: int, number: int, kind: int
) -> tuple[Table, bytes] | None:
    """The elements that start at `start`, and the bytes of the attribute after them.

    start, value, stop: the first field's, whose number and wire type are these. None
    where the attribute has more elements after that run.
    """
    if number == _STRINGS:
        return _words(data[start:end])
    if kind == BYTES:
        numbers, after = _PACKED[number](data, value, stop), stop
    else:
        numbers, after = _UNPACKED[number](data, start, end)
    if any(field[0] in NAMES for field in fields(data, after, end)):
        return None
    return Table(NAMES[number], numbers), bytes(data[after:end])


def _words(held: bytes) -> tuple[Table, bytes] | None:
    """The words of an attribute, equal ones once; protobuf finds where they end."""
    rest: Any = onnx.AttributeProto.FromString(held)
    if len(rest.floats) or len(rest.ints):
        return None
    known: dict[bytes, str] = {}
    words = tuple(
        known[word] if word in known else known.setdefault(word, word.decode())
        for word in rest.strings
    )
    rest.ClearField("strings")
    return Table("strings", words), rest.SerializeToString()


def _packed_floats(data: Buffer, at: int, end: int) -> np.ndarray:
    if (end - at) % 4:
        raise WireError(f"{end - at} bytes at byte {at} are no floats of 4 bytes")
    return np.frombuffer(data, "<f4", (end - at) // 4, at).copy()


def _floats(data: Buffer, at: int, end: int) -> tuple[np.ndarray, int]:
    """Floats with a tag each, from `at` to the first other field."""
    records = np.frombuffer(data, np.uint8, (end - at) // 5 * 5, at).reshape(-1, 5)
    count = _first_false(records[:, 0] == _FLOAT_TAG)
    values = np.ascontiguousarray(records[:count, 1:]).view("<f4").reshape(-1)
    return values, at + 5 * count


def _packed_ints(data: Buffer, at: int, end: int) -> np.ndarray:
    parts = []
    while at < end:
        chunk = np.frombuffer(data, np.uint8, min(_CHUNK, end - at), at)
        stops = np.flatnonzero(chunk < 0x80) + 1
        if not len(stops):
            raise WireError(f"a number at byte {at} goes past byte {end}")
        parts.append(_varints(chunk, np.append(0, stops[:-1]), stops))
        at += int(stops[-1])
    return _joined(parts)


def _ints(data: Buffer, at: int, end: int) -> tuple[np.ndarray, int]:
    """Integers with a tag each, from `at` to the first other field."""
    parts = []
    while at < end:
        chunk = np.frombuffer(data, np.uint8, min(_CHUNK, end - at), at)
        stops = np.flatnonzero(chunk < 0x80) + 1
        tags, stops = stops[0::2][: len(stops) // 2], stops[1::2]
        starts = np.append(0, stops)[: len(tags)]
        is_tag = (tags - starts == 1) & (chunk[starts] == _INT_TAG)
        count = _first_false(is_tag)
        if not count:
            break
        parts.append(_varints(chunk, tags[:count], stops[:count]))
        at += int(stops[count - 1])
        if count < len(tags):
            break
    return _joined(parts), at


def _varints(chunk: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """The numbers in chunk[start:stop] each."""
    lengths = stops - starts
    longest = int(lengths.max(initial=0))
    if longest > _MOST_BYTES:
        raise WireError("a number of an attribute is longer than ten bytes")
    values = np.zeros(len(starts), np.uint64)
    for place in range(longest):
        has = slice(None) if place == 0 else lengths > place
        part = chunk[starts[has] + place] & np.uint8(0x7F)
        values[has] |= part.astype(np.uint64) << np.uint64(7 * place)
    return values.view(np.int64)


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _first_false(truth: np.ndarray) -> int:
    return len(truth) if truth.all() else int(truth.argmin())


_PACKED: dict[int, Callable[[Buffer, int, int], np.ndarray]] = {
    _FLOATS: _packed_floats,
    _INTS: _packed_ints,
}
_UNPACKED: dict[int, Callable[[Buffer, int, int], tuple[np.ndarray, int]]] = {
    _FLOATS: _floats,
    _INTS: _ints,
}
