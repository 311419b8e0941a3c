"""The header of a safetensors file: checked when read, laid out when written."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from burnish._files import jsontext
from burnish._files.budget import Budget
from burnish._files.shown import shown
from burnish.errors import RecordError
from burnish.serialize.elements import BITS, RANK

MAX_HEADER = 100_000_000
_LARGEST = 1 << 63  # no size and no place in a file is as large
# An entry becomes a tuple, and its keys and type are the same text in all of them; any
# other object is counted when it is there.
_COSTS = jsontext.Costs(array=88, object=100, quote=6, pair=0)
_OBJECT, _PAIR = 200, 160
_EXPECTED = "a header in JSON with one entry a tensor"
_ONE = {code: code for code in BITS}  # one string for all tensors of a type


class Entry(NamedTuple):
    """One tensor: its element type, its shape, and its bytes after the header."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


class _Fields(NamedTuple):
    """A JSON object with an entry's three keys, unchecked; a dict takes three times as
    much memory."""

    dtype: Any
    shape: Any
    data_offsets: Any


class Header(NamedTuple):
    """A file's header; `start` is where the values begin."""

    entries: dict[str, Entry]
    metadata: dict[str, str]
    start: int


def bytes_needed(code: str, shape: Iterable[int], where: str) -> int:
    """The size of a tensor; RecordError when it does not fill whole bytes."""
    bits = BITS[code] * math.prod(shape)
    if bits % 8:
        raise RecordError(f"{where}: expected whole bytes, got {bits} bits of {code}")
    return bits // 8


def layout(
    tensors: Iterable[tuple[str, str, tuple[int, ...]]],
    metadata: Mapping[str, str] | None,
    where: str,
) -> tuple[bytes, dict[str, Entry]]:
    """The first bytes of a file with these (name, dtype, shape), and its entries."""
    import json

    entries: dict[str, Entry] = {}
    stop = 0
    ordered = sorted(tensors, key=lambda item: (-RANK[item[1]], item[0]))
    for name, code, shape in ordered:
        if name in entries or name == "__metadata__":
            raise RecordError(f"{where}: expected a name used once, got {name!r}")
        start = stop
        stop += bytes_needed(code, shape, f"{where}: tensor {name!r}")
        entries[name] = Entry(code, shape, start, stop)
    page: dict[str, Any] = {
        name: {"dtype": e.dtype, "shape": e.shape, "data_offsets": (e.start, e.stop)}
        for name, e in entries.items()
    }
    if metadata:
        if not _is_text_map(metadata):
            raise RecordError(
                f"{where}: expected metadata of strings, got {metadata!r}"
            )
        page = {"__metadata__": dict(sorted(metadata.items())), **page}
    try:
        text = json.dumps(page, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise RecordError(f"{where}: a name is not Unicode text: {error}") from None
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER:
        raise RecordError(
            f"{where}: expected a header of at most {MAX_HEADER} bytes, got {len(text)}"
        )
    return len(text).to_bytes(8, "little") + text, entries


def read_header(data: Any, budget: Budget) -> Header:
    """The header at the start of `data`, the bytes of a file; all of it is checked.

    Raises RecordError unless the tensors fill the file exactly, in some order, without
    a gap and without an overlap.
    """
    size, where = len(data), budget.where
    if size < 8:
        raise RecordError(f"{where}: expected at least 8 bytes, got {size}")
    length = int.from_bytes(data[:8], "little")
    if length > MAX_HEADER or length > size - 8:
        raise RecordError(
            f"{where}: expected a header of at most {min(MAX_HEADER, size - 8)} bytes, "
            f"got one of {length}; is this a safetensors file, and is it whole? "
            f"download or save it again"
        )
    page = _parse(bytes(data[8 : 8 + length]), budget)
    metadata = page.pop("__metadata__", {})
    if isinstance(metadata, _Fields):  # words of its own that happen to be these
        metadata = metadata._asdict()
    if not _is_text_map(metadata):
        raise RecordError(
            f"{where}: expected __metadata__ of strings, got {shown(metadata)}"
        )
    entries = {name: _entry(name, page.pop(name), where) for name in list(page)}
    _fill(entries, size - 8 - length, where)
    return Header(entries, metadata, 8 + length)


def _parse(text: bytes, budget: Budget) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> Any:
        made = dict(pairs)
        if len(made) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            twice = next(name for name in made if counts[name] > 1)
            raise ValueError(f"{shown(twice)} occurs twice")
        if made.keys() != set(_Fields._fields):
            if not all(type(value) is _Fields for value in made.values()):
                budget.take(_OBJECT + _PAIR * len(pairs))
            return made
        code = made["dtype"]
        made["dtype"] = _ONE.get(code, code) if isinstance(code, str) else code
        return _Fields(**made)

    page = jsontext.parse(text, budget, unique, _COSTS, _EXPECTED)
    if isinstance(page, _Fields):  # tensors that happen to have these names
        page = page._asdict()
    if not isinstance(page, dict):
        raise RecordError(
            f"{budget.where}: expected a JSON object as header, got {shown(page)}"
        )
    for name in page:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise RecordError(
                f"{budget.where}: expected names of Unicode text, got {shown(name)}"
            ) from None
    return page


def _entry(name: str, value: Any, where: str) -> Entry:
    where = f"{where}: tensor {shown(name)}"
    if not isinstance(value, _Fields):
        raise RecordError(
            f"{where}: expected dtype, shape and data_offsets, got {shown(value)}"
        )
    code, shape, offsets = value
    if not isinstance(code, str) or code not in BITS:
        raise RecordError(
            f"{where}: expected a dtype out of {', '.join(BITS)}, got {shown(code)}"
        )
    if not _is_sizes(shape) or len(shape) > 64:
        raise RecordError(
            f"{where}: expected a shape of at most 64 sizes, got {shown(shape)}"
        )
    if not _is_sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise RecordError(
            f"{where}: expected data_offsets [start, stop], got {shown(offsets)}"
        )
    need = bytes_needed(code, shape, where)
    if offsets[1] - offsets[0] != need:
        raise RecordError(
            f"{where}: expected {need} bytes for {code} {shown(shape)}, "
            f"got data_offsets {shown(offsets)}"
        )
    return Entry(code, tuple(shape), *offsets)


def _fill(entries: dict[str, Entry], size: int, where: str) -> None:
    stop = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1][2:]):
        if entry.start != stop:
            raise RecordError(
                f"{where}: tensor {shown(name)}: expected its data to start at "
                f"{stop}, after the tensor before, got {entry.start}"
            )
        stop = entry.stop
    if stop != size:
        raise RecordError(
            f"{where}: expected {stop} bytes of data after the header, got {size}"
        )


def _is_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(
        type(n) is int and 0 <= n < _LARGEST for n in value
    )


def _is_text_map(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(text, str) for pair in value.items() for text in pair
    )
