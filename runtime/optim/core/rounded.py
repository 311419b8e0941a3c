"""Rounded: a gradient kept in half precision.

An optimizer's kernel widens its elements as it reads them. Anything else asks for
`data`, which is float32; all gradients of one `backward()` are cast then, at once.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from burnish.autodiff import Gradients
from burnish.backend.cuda.elementwise.casts import cast_all
from burnish.tensor import Tensor

_SINGLE = np.dtype(np.float32)


class Rounded(Tensor):
    """A gradient whose values are in half precision, and whose dtype is float32.

    together: references to those of the same `backward()`, this one among them.
    """

    __slots__ = ("_made", "_together", "rounded")

    def __init__(self, half: Any, device: Any, together: list[weakref.ref[Rounded]]):
        self.rounded, self.device, self._together = half, device, together
        self.node, self.index = None, 0
        self._made: Any = None
        together.append(weakref.ref(self))

    @property
    def data(self) -> Any:
        if self._made is None:
            alive = [one for held in self._together if (one := held()) is not None]
            waiting = [each for each in alive if each._made is None]
            arrays = cast_all([each.rounded for each in waiting], _SINGLE)
            for each, array in zip(waiting, arrays, strict=True):
                each._made = array
        return self._made

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.rounded.shape
        return shape

    @property
    def dtype(self) -> Any:
        return _SINGLE


def keep_rounded(gradients: Gradients, half: np.dtype[Any]) -> None:
    """Let gradients in half precision be cast when somebody asks for them."""
    together: list[weakref.ref[Rounded]] = []

    def made(found: Any) -> Any:
        if found.data.dtype != half:
            return found
        return Rounded(found.data, found.device, together)

    gradients.replace(made)
