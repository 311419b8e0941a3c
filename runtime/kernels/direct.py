"""One kernel of the library run by itself, for operators outside of plans.

Such a call never builds the library: a kernel is used where the library was built
before, by `burnish kernels build` or for the first plan.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.kernels.library import Library, built_before
from burnish.kernels.records import BY_NAME, packed, reference
from burnish.kernels.threads import num_threads

_MOST = 32
"""The most shares of a record, which threads split it into."""

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
    library = usable()
    assert library is not None
    pointers, values = [], {}
    for name in BY_NAME[kernel].references:
        array = fields.pop(name)
        values[name] = -1 if array is None else reference(len(pointers))
        if array is not None:
            pointers.append(address(array))
    record = packed(kernel, parts, **values, **fields)
    table = np.array(pointers, np.uint64)
    threads = num_threads() if parts > 1 else 1
    library.run(address(np.frombuffer(record, np.uint8)), 1, address(table), threads)


def address(array: Any) -> int:
    """Where an array's elements are."""
    return array.__array_interface__["data"][0]
