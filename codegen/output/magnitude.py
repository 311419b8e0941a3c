"""The magnitude of an output, which its tolerances are a share of."""

from __future__ import annotations

from typing import Any

import numpy as np

_FAR = 1000  # times what is beside it is a number that a mask fills in


def magnitude(numbers: np.ndarray, alike: Any = True) -> float:
    """The largest size of finite numbers, without the one that a mask fills in.

    That one stands more than once, far above all others. alike: the places where what
    is compared has the same number, in the shape of `numbers`, or True for all.
    """
    sizes = np.abs(numbers)
    largest = float(sizes.max(initial=0))
    is_filled = (sizes == largest) & alike
    rest = float(sizes[~is_filled].max(initial=0))
    is_mask = is_filled.sum() > 1 and 0 < rest * _FAR < largest
    return rest if is_mask else largest
