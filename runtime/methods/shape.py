"""Shape methods of tensors: axes and their lengths."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from burnish import ops
from burnish.autodiff import Variable
from burnish.habits import Size
from burnish.methods._bind import axes_from, method, shape_from
from burnish.operator import explained

if TYPE_CHECKING:
    from burnish.tensor import Tensor


class ShapeMethods(Variable):
    """Moving elements without changing them."""

    __slots__ = ()

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return Size(math.prod(self.shape))

    @property
    def T(self) -> Tensor:
        """All axes reversed."""
        return ops.transpose(self)

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged."""
        return ops.swapaxes(self, -1, -2)

    @explained
    def reshape(self, *shape: Any) -> Tensor:
        """Another shape, as integers or as one tuple; one -1 is worked out."""
        return ops.reshape(self, shape=shape_from(shape))

    @explained
    def transpose(self, *axes: Any) -> Tensor:
        """The axes in another order; without one, reversed."""
        return ops.transpose(self, axes=shape_from(axes) or None)

    @explained
    def permute(self, *axes: Any) -> Tensor:
        """The axes in another order."""
        return ops.permute(self, shape_from(axes))

    flatten = method(lambda: ops.flatten)

    @explained
    def squeeze(self, *axes: Any, axis: Any = None) -> Tensor:
        """Without these axes of length 1; without any argument, all of length 1."""
        return ops.squeeze(self, axes_from("squeeze", axes, axis))

    @explained
    def unsqueeze(self, *axes: Any, axis: Any = None) -> Tensor:
        """With axes of length 1 at these places of the result."""
        return ops.unsqueeze(self, axes_from("unsqueeze", axes, axis))

    @explained
    def expand(self, *shape: Any) -> Tensor:
        """Broadcast together with a shape; -1 there keeps this tensor's length."""
        return ops.expand(self, shape=shape_from(shape))

    @explained
    def tile(self, *repeats: Any) -> Tensor:
        """Repeated along each axis."""
        return ops.tile(self, repeats=shape_from(repeats))

    split = method(lambda: ops.split)
    chunk = method(lambda: ops.chunk)

    @explained
    def flip(self, *axes: Any, axis: Any = None) -> Tensor:
        """Backwards along axes, all when none is named."""
        return ops.flip(self, axes_from("flip", axes, axis))

    roll = method(lambda: ops.roll)
    pad = method(lambda: ops.pad)
    t = method(lambda: ops.t)
    unbind = method(lambda: ops.unbind)
    unfold = method(lambda: ops.unfold, scalars=True)
    swapaxes = method(lambda: ops.swapaxes, scalars=True)
    moveaxis = method(lambda: ops.moveaxis, scalars=True)
