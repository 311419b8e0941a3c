"""The header of a safetensors file: checked when read, laid out when written."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from burnish.errors import RecordError
from burnish.serialize.elements import BITS, RANK

MAX_HEADER = 100_000_000
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
    """What a file holds, without its values; `start` is where the values begin."""

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


def read_header(data: Any, size: int, where: str) -> Header:
    """The header at the start of `data`, a file of `size` bytes; all of it is checked.

    Raises RecordError unless the tensors fill the file exactly, in some order, without
    a gap and without an overlap.
    """
    if size < 8:
        raise RecordError(f"{where}: expected at least 8 bytes, got {size}")
    length = int.from_bytes(data[:8], "little")
    if length > MAX_HEADER or length > size - 8:
        raise RecordError(
            f"{where}: expected a header of at most {min(MAX_HEADER, size - 8)} bytes, "
            f"got one of {length}; is this a safetensors file?"
        )
    page = _parse(bytes(data[8 : 8 + length]), where)
    metadata = page.pop("__metadata__", {})
    if isinstance(metadata, _Fields):  # words of its own that happen to be these
        metadata = metadata._asdict()
    if not _is_text_map(metadata):
        raise RecordError(
            f"{where}: expected __metadata__ of strings, got {_short(metadata)}"
        )
    entries = {name: _entry(name, page.pop(name), where) for name in list(page)}
    _fill(entries, size - 8 - length, where)
    return Header(entries, metadata, 8 + length)


def _parse(text: bytes, where: str) -> dict[str, Any]:
    import json

    def unique(pairs: list[tuple[str, Any]]) -> Any:
        made = dict(pairs)
        if len(made) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            twice = next(name for name in made if counts[name] > 1)
            raise ValueError(f"{_short(twice)} occurs twice")
        if made.keys() != set(_Fields._fields):
            return made
        code = made["dtype"]
        made["dtype"] = _ONE.get(code, code) if isinstance(code, str) else code
        return _Fields(**made)

    try:
        check_density(text)
        page = json.loads(text.decode(), object_pairs_hook=unique)
        if isinstance(page, _Fields):  # tensors that happen to have these names
            page = page._asdict()
        for name in page:
            name.encode()
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        problem = _short(str(error), quote=False)
        raise RecordError(
            f"{where}: expected a header in JSON with one entry a tensor: {problem}"
        ) from None
    if not isinstance(page, dict):
        raise RecordError(
            f"{where}: expected a JSON object as header, got {_short(page)}"
        )
    return page


def check_density(text: bytes) -> None:
    """Raise ValueError when JSON has so many values that they fill the memory.

    A tensor's entry has three brackets and ten quotes in fifty bytes or more; an empty
    list in two bytes takes sixty.
    """
    brackets = text.count(b"[") + text.count(b"{")
    if 12 * brackets > len(text) + 12_000 or 4 * text.count(b'"') > len(text) + 16_000:
        raise ValueError("more lists and strings than tensors need")


def _entry(name: str, value: Any, where: str) -> Entry:
    where = f"{where}: tensor {_short(name)}"
    if not isinstance(value, _Fields):
        raise RecordError(
            f"{where}: expected dtype, shape and data_offsets, got {_short(value)}"
        )
    code, shape, offsets = value
    if not isinstance(code, str) or code not in BITS:
        raise RecordError(
            f"{where}: expected a dtype out of {', '.join(BITS)}, got {_short(code)}"
        )
    if not _is_sizes(shape) or len(shape) > 64:
        raise RecordError(
            f"{where}: expected a shape of at most 64 sizes, got {_short(shape)}"
        )
    if not _is_sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise RecordError(
            f"{where}: expected data_offsets [start, stop], got {_short(offsets)}"
        )
    need = bytes_needed(code, shape, where)
    if offsets[1] - offsets[0] != need:
        raise RecordError(
            f"{where}: expected {need} bytes for {code} {_short(shape)}, "
            f"got data_offsets {_short(offsets)}"
        )
    return Entry(code, tuple(shape), *offsets)


def _fill(entries: dict[str, Entry], size: int, where: str) -> None:
    stop = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1][2:]):
        if entry.start != stop:
            raise RecordError(
                f"{where}: tensor {_short(name)}: expected its data to start at "
                f"{stop}, after the tensor before, got {entry.start}"
            )
        stop = entry.stop
    if stop != size:
        raise RecordError(
            f"{where}: expected {stop} bytes of data after the header, got {size}"
        )


def _is_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and n >= 0 for n in value)


def _is_text_map(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(text, str) for pair in value.items() for text in pair
    )


def _short(value: Any, quote: bool = True) -> str:
    """At most 80 characters of a value that came from a file, on one line."""
    try:
        text = ascii(value) if quote else value.replace("\n", " ")
    except (ValueError, RecursionError):
        return f"a {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."
