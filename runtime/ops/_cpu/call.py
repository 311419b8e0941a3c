"""When an operator's kernel of the C library is used, and how it is called."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend import Array

FEW = 1 << 12
"""Elements below which a call of a kernel costs more than it spares."""


def suits(*arrays: Array | None) -> bool:
    """Whether kernels take these arrays, the first being the largest."""
    if any(a is not None and a.dtype != np.float32 for a in arrays):
        return False
    first = arrays[0]
    return first is not None and first.size >= max(FEW, 1) and usable()


def usable() -> bool:
    """Whether the library was built before."""
    from burnish.kernels import direct

    return direct.usable() is not None


def launch(kernel: str, work: float, **fields: Any) -> None:
    """Run a kernel; `work` is how many elements, or products by eight, it goes over."""
    from burnish.kernels import direct

    direct.launch(kernel, direct.shares(work), **fields)


def dense(a: Array | None) -> Any:
    """The array with its elements side by side; None for None."""
    return None if a is None else np.ascontiguousarray(a)
