"""When an operator's kernel of the C library is used, and how it is called."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend import Array

FEW = 1 << 12
"""Elements below which a call of a kernel costs more than it spares."""


def suits(*arrays: Any) -> bool:
    """Whether kernels take these arrays, the first being the largest."""
    for a in arrays:
        if a is not None and getattr(a, "dtype", None) != np.float32:
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


def element_wise(steps: list[tuple[Any, ...]], *operands: Array) -> Array:
    """The result of a program whose operands have one shape."""
    from burnish.kernels import direct

    out = np.empty(operands[0].shape, np.float32)
    read = [(dense(a), (1,)) for a in operands]
    direct.program(steps, (out.size,), out, *read)
    return out


def launch_shared(
    kernel: str, work: float, most: int, room: int, **fields: Any
) -> None:
    """`launch` in at most so many shares, each with room for so many numbers."""
    from burnish.kernels import direct

    parts = min(direct.shares(work), most)
    space = np.empty(parts * room, np.float32)
    direct.launch(kernel, parts, space=space, room=room, **fields)
