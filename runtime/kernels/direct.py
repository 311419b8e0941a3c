"""One kernel of the library run by itself, for operators outside of plans.

Such a call never builds the library: a kernel is used where the library was built
before, by `burnish kernels build` or for the first plan.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence
from math import prod
from operator import itemgetter
from typing import Any

import numpy as np

from burnish.kernels.elementwise import OUTER, Step, coded, mode
from burnish.kernels.interpreter import is_cpython
from burnish.kernels.library import built_before
from burnish.kernels.records import (
    BY_NAME,
    READS,
    RESULTS,
    Record,
    packed,
    record_of,
    records_of,
    reference,
)
from burnish.kernels.same import functions
from burnish.kernels.threads import num_threads

_MOST = 32
"""The maximum number of shares of a record, which threads split it into."""

_AT_ONCE = 1 << 10
"""Records of one run; the library takes 4095."""

_ENOUGH = 1 << 14
"""Elements, or products by eight, that are worth another thread."""


usable = built_before
"""The library, where it was built before or is loaded; None elsewhere."""


def shares(work: float) -> int:
    """Into how many shares to split so much work: elements, or products by eight."""
    most = int(work) // _ENOUGH
    return 1 if most < 2 else min(num_threads(), _MOST, most)


def _threads(parts: int) -> int:
    """All, even for fewer shares: for another number the pool is made anew."""
    return num_threads() if parts > 1 else 1


def launch(kernel: str, parts: int, **fields: Any) -> None:
    """Run one record: arrays, or None, for its references, numbers for the others.

    Arrays have to be contiguous and of the types that the kernel takes.
    """
    run_one(kernel, parts, fields)


def run_one(kernel: str, parts: int, fields: dict[str, Any]) -> None:
    """`launch`, whose fields are a dict already."""
    arrays_of, numbers_of = _getters(kernel)
    record = _record(kernel, parts, numbers_of(fields))
    _on_arrays(record, arrays_of(fields), _threads(parts))


def _on_arrays(record: bytes, arrays: tuple[Any, ...], threads: int) -> None:
    """Run a record, whose references are numbers of arrays; None for absent ones."""
    library = usable()
    assert library is not None
    known = _format()
    if known and library.run_on_arrays(known, record, arrays, len(arrays), threads):
        return
    addresses = [0 if array is None else _told(array) for array in arrays]
    library.run(record, 1, _table(addresses), threads)


@functools.cache
def _getters(kernel: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """What takes a kernel's arrays, and its numbers, from its fields, as tuples."""
    record = BY_NAME[kernel]
    return itemgetter(*record.references), itemgetter(*record.integers, *record.reals)


@functools.lru_cache(1 << 12)
def _record(kernel: str, parts: int, numbers: tuple[float, ...]) -> bytes:
    """The record that calls of a kernel with these numbers share."""
    form = BY_NAME[kernel]
    places = [*map(reference, range(len(form.references)))]
    named = dict(zip(form.integers + form.reals, numbers, strict=True))
    return record_of(kernel, parts, places, named)


def program(
    steps: Sequence[Step],
    sizes: Sequence[int],
    out: Any,
    *read: tuple[Any, ...],
    to: str = "values",
    other: int = -1,
) -> None:
    """Run an element-wise program for `out`, whose axes are of `sizes`: at most six.

    read: float32 arrays, each with its strides along the axes, in elements. to: "sums"
    gives the sum of each tile of PROGRAM["tile"] elements of a plane. other: a register
    that is a result too, behind the first one's elements; with "pairs" each plane of it
    behind that of the first.
    """
    parts = shares(4 * prod(sizes) * len(steps))
    ways = tuple([way for _, way in read])
    record, *code = _program(tuple(steps), tuple(sizes), ways, parts, to, other)
    _on_arrays(record, (out, *code, *[array for array, _ in read]), _threads(parts))


@functools.lru_cache(1 << 10)
def _program(
    steps: tuple[Step, ...],
    sizes: tuple[int, ...],
    read: tuple[Any, ...],
    parts: int,
    to: str,
    other: int,
) -> tuple[bytes, Any, Any]:
    """The record, the code and the operands that calls for such arrays share."""
    outer = [1] * (OUTER + 2 - len(sizes)) + [*sizes]
    operands = []
    for i, ways in enumerate(read):
        ways = [0] * (len(outer) - len(ways)) + [*ways]
        way = READS[mode(ways[OUTER:], *outer[OUTER:])]
        operands += [reference(i + 3), way, 0, *ways]
    record = packed(
        "program", parts, out=reference(0), code=reference(1), table=reference(2),
        steps=len(steps), operands=len(read), result=len(read) + len(steps) - 1,
        other=other, to=RESULTS[to], **{f"size{i}": outer[i] for i in range(OUTER)},
        rows=outer[OUTER], width=outer[OUTER + 1],
    )  # fmt: skip
    code = np.frombuffer(coded(steps, len(read)), np.uint8)
    return record, code, np.array(operands, np.int64)


def prepared(
    calls: Sequence[tuple[str, int, dict[str, Any]]], *later: str
) -> Callable[..., None]:
    """A function that runs these records, (kernel, parts, fields), one after another.

    It takes arrays for the references named in `later`, in their order. The others stay
    where they are: the caller keeps them alive.
    """
    library = usable()
    assert library is not None
    find = _finder()
    held: list[int] = []
    records: list[bytes] = []
    places = {name: reference(i) for i, name in enumerate(later)}
    for kernel, parts, fields in calls:
        row = []
        for name in BY_NAME[kernel].references:
            if name in places:
                row.append(places[name])
            elif fields[name] is None:
                row.append(-1)
            else:
                row.append(reference(len(later) + len(held)))
                held.append(find(fields[name]))
        records.append(record_of(kernel, parts, row, fields))
    joined, count, kept = b"".join(records), len(records), _table(held)
    most = max(parts for _, parts, _ in calls)
    table = struct.Struct(f"={len(later)}Q").pack

    def run(*arrays: Any) -> None:
        addresses = table(*map(find, arrays)) + kept
        library.run(joined, count, addresses, _threads(most))

    return run


def run(kernel: str, calls: list[tuple[int, dict[str, Any]]]) -> None:
    """Run a record for each of the calls, (parts, fields), one after another."""
    library = usable()
    assert library is not None
    for start in range(0, len(calls), _AT_ONCE):
        some = calls[start : start + _AT_ONCE]
        addresses: list[int] = []
        rows = [_references(BY_NAME[kernel], each, addresses) for _, each in some]
        parts = [parts for parts, _ in some]
        records = records_of(kernel, parts, rows, [fields for _, fields in some])
        library.run(records, len(some), _table(addresses), _threads(max(parts)))


def _references(
    record: Record, fields: dict[str, Any], addresses: list[int]
) -> list[int]:
    """A call's references; its arrays' addresses are added to `addresses`."""
    row, find = [], _finder()
    for array in map(fields.__getitem__, record.references):
        if array is None:
            row.append(-1)
        else:
            row.append(reference(len(addresses)))
            addresses.append(find(array))
    return row


def _table(addresses: Sequence[int]) -> bytes:
    return struct.pack(f"={len(addresses)}Q", *addresses)


def address(array: Any) -> int:
    """The address of an array's elements."""
    return _finder()(array)


@functools.cache
def _finder() -> Callable[[Any], int]:
    """How to find an array's address: what Python's interface says takes ten times as
    long as reading the pointer that CPython's arrays begin with, behind their head."""
    if not _is_known():
        return _told
    import ctypes

    read, place, kind = ctypes.c_ssize_t.from_address, object.__basicsize__, np.ndarray

    def find(array: Any) -> int:
        if type(array) is kind:
            return read(id(array) + place).value
        return _told(array)

    return find


def _is_known() -> bool:
    """Whether an object's second word is its type, and an array's elements follow."""
    if not is_cpython():
        return False
    import ctypes

    probe, read = np.zeros(3)[1:], ctypes.c_ssize_t.from_address
    found = [read(id(probe) + at).value for at in (_TYPE_AT, object.__basicsize__)]
    return found == [id(np.ndarray), _told(probe)]


_TYPE_AT = np.dtype(np.intp).itemsize


@functools.cache
def _format() -> Any:
    """What `run_on_arrays` goes by; None where arrays are not as it expects."""
    if not _is_known():
        return None
    import ctypes

    names = ("PyEval_SaveThread", "PyEval_RestoreThread", "PyTuple_GetItem")
    places = _TYPE_AT, object.__basicsize__
    words = (*functions(names), id(None), id(np.ndarray), *places)
    return (ctypes.c_int64 * len(words))(*words)


def _told(array: Any) -> int:
    place: int = array.__array_interface__["data"][0]
    return place
