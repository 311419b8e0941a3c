"""Dtype conversion methods, by the names that PyTorch gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burnish import ops
from burnish.autodiff import Variable

if TYPE_CHECKING:
    from burnish.tensor import Tensor


class ConvertMethods(Variable):
    """Casts; in a class of their own, since they are named as Python's types are."""

    __slots__ = ()

    def double(self) -> Tensor:
        """As float64."""
        return ops.cast(self, dtype="float64")

    def float(self) -> Tensor:
        """As float32."""
        return ops.cast(self, dtype="float32")

    def half(self) -> Tensor:
        """As float16."""
        return ops.cast(self, dtype="float16")

    def long(self) -> Tensor:
        """As int64, fractions cut off."""
        return ops.cast(self, dtype="int64")

    def int(self) -> Tensor:
        """As int32, fractions cut off."""
        return ops.cast(self, dtype="int32")

    def bool(self) -> Tensor:
        """Whether each element is not zero."""
        return ops.cast(self, dtype="bool")
