"""Precision: which layers' floating-point values are held in another dtype."""

from __future__ import annotations

from typing import Any

import numpy as np


class Precision:
    """A dtype for the floating-point tensors of some layers.

    only: these kinds of layers; () is all. without: but not these, as batch
    normalization for "float16".
    """

    def __init__(
        self, dtype: Any, only: tuple[type, ...] = (), without: tuple[type, ...] = ()
    ):
        self.dtype = np.dtype(dtype)
        self.only = only
        self.without = without

    def of(self, layer: Any) -> np.dtype[Any] | None:
        """The dtype for this layer, or None when it keeps its own."""
        chosen = not self.only or isinstance(layer, self.only)
        return self.dtype if chosen and not isinstance(layer, self.without) else None


def precision(value: Any) -> Precision | None:
    """A Precision out of one, a dtype, or None."""
    return value if value is None or isinstance(value, Precision) else Precision(value)
