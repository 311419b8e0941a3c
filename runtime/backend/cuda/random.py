"""Random numbers drawn on a GPU, from a key that the host drew."""

from __future__ import annotations

from typing import Any

from burnish.backend.cuda.kernels import kernel


def keep_mask(shape: tuple[int, ...], probability: float, key: int, index: int) -> Any:
    """Booleans on GPU number `index`, True with `probability`; the same for a key."""
    import cupy

    with cupy.cuda.Device(index):
        y = cupy.empty(shape, bool)
        blocks = -(-y.size // 1024)
        if blocks:
            given = (y, y.size, cupy.uint64(key), float(probability))
            kernel("keep_mask")((blocks,), (256,), given)
        return y
