"""Deferred: a tensor that is computed when somebody asks for its numbers."""

from __future__ import annotations

from typing import Any

from burnish.autodiff import Variable
from burnish.tensor import Tensor


class Deferred(Tensor):
    """The base of results that a kernel of a later call may compute with its own.

    Subclasses say how (`whole`), and which operand has the shape and the device.
    """

    __slots__ = ()

    def whole(self) -> Variable:
        """The result as a plain tensor."""
        raise TypeError(f"{type(self).__name__} does not say how it is computed")

    @property
    def operand(self) -> Variable:
        """An operand of the result's shape, on its device."""
        raise TypeError(f"{type(self).__name__} does not name an operand")

    @property
    def data(self) -> Any:
        return self.whole().data

    @property
    def node(self) -> Any:  # type: ignore[override]
        return self.whole().node

    @property
    def index(self) -> int:  # type: ignore[override]
        return self.whole().index

    @property
    def device(self) -> Any:  # type: ignore[override]
        return self.operand.device

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.operand.shape
        return shape
