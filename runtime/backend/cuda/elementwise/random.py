"""Random numbers drawn on a GPU, from a key that the host drew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burnish.backend.cuda.graphs import live
from burnish.backend.cuda.kernels import kernel


def keep_mask(
    shape: tuple[int, ...], probability: float, draw: Callable[[], int]
) -> Any:
    """Booleans on the current GPU, True with `probability`; the same for a key.

    draw: gives the key; in a capture, once for each launch.
    """
    import cupy

    y = cupy.ndarray(shape, bool)
    blocks = -(-y.size // 1024)
    if not blocks:
        return y
    places = live.numbers()
    if places is None:
        key = np.uint64(draw())
    else:
        key = places.place(lambda: np.uint64(draw()), 1)
    made = kernel("keep_mask", in_memory=places is not None)
    made((blocks,), (256,), (y, y.size, key, float(probability)))
    return y
