"""A plan file: safetensors with tables of records, and the constants packed for them.

`constants` is the bytes of all packed arrays, shared by the plans. Plan i has
`i.records`, the table, and `i.slots`: for each array of a call its place among the
constants, or -1, and its size in bytes. `source` is the source of the model's class and
`weights` the header of its weights file as they were when it was planned. The metadata
says the rest in JSON: see `Manifest` and `Parts`.

What is checked when a file is opened: every record's kind, every reference against the
size of the array that it names, every range of records. Constants are mapped, and not
read for a digest.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from burnish._files import jsontext
from burnish._files.budget import Budget
from burnish.errors import RecordError
from burnish.kernels.records import BY_NAME, PLACE, RECORDS, WORDS
from burnish.planned.space import ARENA, Fetch
from burnish.planned.words import dtype_read
from burnish.serialize import Weights, open_weights

VERSION = 2
KEY = "burnish.plan"
"""The metadata key of everything that is not an array."""
MOST_RECORDS = 4095
"""Of one segment: the library takes no more at once."""
ALIGNED = 64
"""Bytes that every constant's place is a multiple of."""

_PROGRAM = tuple(BY_NAME).index("program")


class Call(NamedTuple):
    """An operator that runs eagerly between records.

    args, options: in the words of `planned.words`. results: places with their shapes.
    fetched: what it reads out of arrays. given: (place, slot) of what records read.
    """

    name: str
    args: Any
    options: Any
    results: list[tuple[int, tuple[int, ...]]]
    fetched: list[Fetch]
    given: list[tuple[int, int]]


class Parts(NamedTuple):
    """One plan of a file, checked.

    kinds: of each argument of the call (dtype, shape) and a whole number's value where
    the plan is for that one. takes: the arguments that have a place in the program.
    given: (place, slot) of arguments. outside: (slot, size) of arrays that a run makes.
    held: parameters and buffers by their place. folded: (place, start among constants,
    shape, dtype). segments: (first, behind) of records, or calls.
    """

    kinds: tuple[tuple[Any, tuple[int, ...], Any], ...]
    takes: tuple[int, ...]
    records: Any
    slots: Any
    arena: int
    given: list[tuple[int, int]]
    outside: list[tuple[int, int]]
    faults: list[int]
    fetched: list[Fetch]
    held: dict[int, str]
    folded: list[tuple[int, int, tuple[int, ...], Any]]
    segments: list[tuple[int, int] | Call]
    results: Any


class Manifest(NamedTuple):
    """A plan file that was opened.

    library, width: the identity of the library that runs it, and its vectors. kind: the
    class. names: of forward's arguments. size: of the weights file, whose `header` and
    the class's `source` are as they were. lends: whether every parameter has its values
    in that file under its own path.
    """

    path: Path
    library: str
    width: int
    kind: str
    names: list[str]
    size: int
    lends: bool
    header: bytes
    source: bytes
    constants: Any
    plans: list[Parts]


def opened(path: Path) -> Manifest:
    """A plan file, checked. Raises RecordError where it is damaged or no plan file."""
    held = open_weights(path)
    text = held.metadata.get(KEY)
    if text is None:
        _damaged(path, f"metadata {KEY!r}, there is none")
    page = jsontext.parse(text.encode(), Budget(len(text), f"{path}: {KEY}"))
    try:
        if page["version"] != VERSION:
            _damaged(path, f"version {VERSION}, got {page['version']}")
        constants = held["constants"].read()
        _need(constants.dtype == np.uint8 and constants.ndim == 1, "constants of bytes")
        return Manifest(
            path,
            _text(page["library"]),
            _number(page["width"]),
            _text(page["class"]),
            [_text(name) for name in page["names"]],
            _number(page["size"]),
            page["lends"] is True,
            held["weights"].read().tobytes(),
            held["source"].read().tobytes(),
            constants,
            [
                _parts(plan, held, number, constants)
                for number, plan in enumerate(page["plans"])
            ],
        )
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        if isinstance(error, RecordError):
            raise
        _damaged(path, f"a whole one: {type(error).__name__}: {error}")


def _damaged(path: Path, expected: str) -> NoReturn:
    raise RecordError(
        f"{path}: expected a plan file, {expected}; delete it, or write it again with "
        f"burnish generate --compiled"
    )


def _need(condition: Any, what: str) -> None:
    if not condition:
        raise ValueError(f"expected {what}")


def _parts(entry: Any, held: Weights, number: int, constants: Any) -> Parts:
    records = held[f"{number}.records"].read()
    slots = held[f"{number}.slots"].read()
    _need(records.dtype == np.int64 and records.shape[1:] == (WORDS,), "records")
    _need(slots.dtype == np.int64 and slots.shape[1:] == (2,), "a table of slots")
    starts, sizes = slots[:, 0], slots[:, 1]
    _need((sizes >= 0).all() and len(slots) > ARENA, "sizes of slots")
    _need((starts <= len(constants) - sizes)[starts >= 0].all(), "constants inside")
    parts = Parts(
        tuple(
            (dtype_read(dtype), _shape(shape), value)
            for dtype, shape, value in entry["kinds"]
        ),
        tuple(map(_number, entry["takes"])),
        records,
        slots,
        _number(entry["arena"]),
        [(_number(place), _number(slot)) for place, slot in entry["given"]],
        [(_number(slot), _number(size)) for slot, size in entry["outside"]],
        [_number(slot) for slot in entry["faults"]],
        [_fetch(each) for each in entry["fetched"]],
        {_number(place): _text(path) for place, path in entry["held"]},
        [
            (_number(place), _number(start), _shape(shape), dtype_read(dtype))
            for place, start, shape, dtype in entry["folded"]
        ],
        [_segment(each) for each in entry["segments"]],
        entry["results"],
    )
    _check_records(parts, constants)
    _check_places(parts, len(constants))
    return parts


def _segment(entry: Any) -> Any:
    if len(entry) == 2:
        return _number(entry[0]), _number(entry[1])
    name, args, options, results, fetched, given = entry
    return Call(
        _text(name),
        args,
        options,
        [(_number(place), _shape(shape)) for place, shape in results],
        [_fetch(each) for each in fetched],
        [(_number(place), _number(slot)) for place, slot in given],
    )


def _fetch(entry: Any) -> Fetch:
    place, slot, offset, shape, dtype = entry
    whole = _number(place), _number(slot), _number(offset)
    return Fetch(*whole, _shape(shape), dtype_read(dtype))


def _number(value: Any) -> int:
    _need(type(value) is int and 0 <= value < 1 << 62, f"a number, got {value!r:.40}")
    return value


def _text(value: Any) -> str:
    _need(type(value) is str, f"a text, got {value!r:.40}")
    return value


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(map(_number, value))


# --- what keeps kernels inside of arrays ---


def _reference_columns() -> Any:
    """Which words of a record are references, by its kind."""
    columns = np.zeros((len(RECORDS), WORDS), bool)
    for kind, record in enumerate(RECORDS):
        columns[kind, 2 : 2 + len(record.references)] = True
    return columns


def _check_references(references: Any, sizes: Any) -> None:
    named = references[references != -1]
    slots, places = named >> PLACE, named & ((1 << PLACE) - 1)
    _need(((slots >= 0) & (slots < len(sizes))).all(), "references to slots")
    _need(
        (places < np.maximum(sizes, 1)[slots]).all(),
        "references inside of their arrays",
    )


def _check_records(parts: Parts, constants: Any) -> None:
    """Every reference names an array of the call, and a place inside of it."""
    kinds, sizes = parts.records[:, 0], parts.slots[:, 1].copy()
    sizes[ARENA] = parts.arena
    _need(((kinds >= 0) & (kinds < len(RECORDS))).all(), "kinds of records")
    columns = _reference_columns()[kinds]
    _check_references(parts.records[columns], sizes)
    record = BY_NAME["program"]
    table = 2 + record.fields.index("table")
    count = 2 + record.fields.index("operands")
    for row in parts.records[kinds == _PROGRAM]:
        slot, offset = int(row[table]) >> PLACE, int(row[table]) & ((1 << PLACE) - 1)
        start, size = map(int, parts.slots[slot])
        wide = 8 * 9 * int(row[count])
        _need(start >= 0 and 0 <= wide <= size - offset, "operands of a program")
        rows = constants[start + offset : start + offset + wide].view(np.int64)
        _check_references(rows.reshape(-1, 9)[:, 0], sizes)


def _check_places(parts: Parts, behind: int) -> None:
    """Check the remaining places: of arrays, parts, arguments and record ranges."""
    sizes = parts.slots[:, 1]
    calls = [each for each in parts.segments if isinstance(each, Call)]
    for segment in parts.segments:
        if not isinstance(segment, Call):
            first, last = segment
            _need(first <= last <= len(parts.records), "segments of records")
            _need(last - first <= MOST_RECORDS, "segments of fewer records")
    for fetch in (*parts.fetched, *(f for call in calls for f in call.fetched)):
        bytes_of = fetch.dtype.itemsize * _product(fetch.shape)
        _need(fetch.offset + bytes_of <= sizes[fetch.slot], "results inside of arrays")
    for place, slot in parts.given:
        dtype, shape, _ = parts.kinds[parts.takes[place]]
        _need(dtype.itemsize * _product(shape) >= sizes[slot], "arguments as large")
    for slot, size in parts.outside:
        _need(size == sizes[slot], "arrays as large as their slots")
    for slot in parts.faults:
        _need(sizes[slot] >= 0, "slots of faults")
    for _, start, shape, dtype in parts.folded:
        wide = dtype.itemsize * _product(shape)
        _need(start + wide <= behind, "folded values inside of the constants")


def _product(shape: tuple[int, ...]) -> int:
    whole = 1
    for size in shape:
        whole *= size
    return whole
