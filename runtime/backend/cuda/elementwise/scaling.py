"""Loss scaling on a GPU: the factor, whether gradients overflowed, and its next value.

All of it is in the GPU's memory, so that a CUDA graph decides anew at each launch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend.cuda.elementwise.skips import Skips
from burnish.backend.cuda.kernels import kernel

_FIRST, _LARGEST, _STEPS = 65536.0, 2.0**24, 2000


class Scale:
    """The factor of a loss, and whether a gradient overflowed in this step."""

    def __init__(self) -> None:
        import cupy

        self.state = cupy.array([_FIRST, 0], np.float32)
        self.overflow = cupy.zeros(2, np.int32)  # of this step, and how many so far
        self.skips = Skips(self.overflow)

    def begin(self) -> None:
        """Nothing has overflowed yet."""
        self.overflow.data.memset_async(0, self.overflow.itemsize)

    def end(self) -> None:
        """Take the factor of the next step."""
        run = kernel("next_scale", steps=_STEPS, largest=_LARGEST)
        run((1,), (1,), (self.state, self.overflow))

    def halve(self) -> bool:
        """Take half of the factor if there was an overflow; whether that may help.

        Waits for the GPU.
        """
        if not int(self.overflow[0]) or float(self.state[0]) <= 1:
            return False
        self.state[0] /= 2
        self.begin()
        return True

    def scaled(self, gradient: Any) -> Any:
        """A loss's own gradient times the factor."""
        return gradient * self.state[0].astype(gradient.dtype)
