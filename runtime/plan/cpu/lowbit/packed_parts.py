"""Codes, scales and zero points of a quantized parameter, as constants of a plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burnish.errors import CaptureError
from burnish.lowbit import Packed
from burnish.nn.core.param import Stored
from burnish.ops.quantized.small import unpacked
from burnish.plan.graph import Array, Constant


class PackedParts:
    """Makes constants of a parameter's parts, whatever values it has by then."""

    def __init__(self, stored: Stored, held: Packed):
        self.held, self._stored = held, stored

    def constant(
        self, make: Callable[[Packed], Array], shape: tuple[int, ...], dtype: Any
    ) -> Constant:
        """The constant `make(the parameter's Packed)`, of that shape."""

        def made() -> Array:
            return make(self._now())

        return Constant(made, shape, np.dtype(dtype), (self._stored,), self._stored)

    def _now(self) -> Packed:
        packed = self._stored.held
        if not isinstance(packed, Packed) or packed.scheme != self.held.scheme:
            raise CaptureError("a parameter is quantized in another way")
        return packed


def numbers(packed: Packed) -> Any:
    """Codes, one a byte, in the shape of the array."""
    scheme = packed.scheme
    return unpacked(packed.codes, scheme.kind, scheme.store, packed.shape)
