"""One kernel of the library run by itself, for operators outside of plans.

Such a call never builds the library: a kernel is used where the library was built
before, by `burnish kernels build` or for the first plan.
"""

from __future__ import annotations

import struct
from typing import Any

from burnish.kernels.library import Library, built_before
from burnish.kernels.records import BY_NAME, packed, reference
from burnish.kernels.threads import num_threads

_MOST = 32
"""The maximum number of shares of a record, which threads split it into."""

_AT_ONCE = 1 << 10
"""Records of one run; the library takes 4095."""

_ENOUGH = 1 << 14
"""Elements, or products by eight, that are worth another thread."""


def usable() -> Library | None:
    """The library, where it was built before or is loaded; None elsewhere."""
    return built_before()


def shares(work: float) -> int:
    """Into how many shares to split so much work: elements, or products by eight."""
    return max(1, min(num_threads(), _MOST, int(work) // _ENOUGH))


def launch(kernel: str, parts: int, **fields: Any) -> None:
    """Run one record: arrays, or None, for its references, numbers for the others.

    Arrays have to be contiguous and of the types that the kernel takes.
    """
    run(kernel, [(parts, fields)])


def run(kernel: str, calls: list[tuple[int, dict[str, Any]]]) -> None:
    """Run a record for each of the calls, (parts, fields), one after another."""
    library = usable()
    assert library is not None
    for start in range(0, len(calls), _AT_ONCE):
        some = calls[start : start + _AT_ONCE]
        addresses: list[int] = []
        records = b"".join([_written(kernel, *call, addresses) for call in some])
        threads = num_threads() if max(parts for parts, _ in some) > 1 else 1
        table = struct.pack(f"={len(addresses)}Q", *addresses)
        library.run(records, len(some), table, threads)


def _written(
    kernel: str, parts: int, fields: dict[str, Any], addresses: list[int]
) -> bytes:
    """A record's bytes; its arrays' addresses are added to `addresses`."""
    values = dict(fields)
    for name in BY_NAME[kernel].references:
        array = values[name]
        values[name] = -1 if array is None else reference(len(addresses))
        if array is not None:
            addresses.append(address(array))
    return packed(kernel, parts, **values)


def address(array: Any) -> int:
    """The address of an array's elements."""
    return array.__array_interface__["data"][0]
