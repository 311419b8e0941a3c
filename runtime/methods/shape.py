"""Axes and their lengths."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from burnish import ops
from burnish.autodiff import Variable
from burnish.errors import InputError
from burnish.methods._bind import along, method, shape_from, whole
from burnish.ops._shapes import axes_of

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
        return math.prod(self.shape)

    @property
    def T(self) -> Tensor:
        """All axes reversed."""
        return ops.transpose(self)

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged."""
        return ops.swapaxes(self, -1, -2)

    def reshape(self, *shape: Any) -> Tensor:
        """Another shape, as integers or as one tuple; one -1 is worked out."""
        return ops.reshape(self, shape=shape_from(shape))

    def transpose(self, *perm: Any) -> Tensor:
        """The axes in another order; without one, reversed."""
        return ops.transpose(self, perm=shape_from(perm) or None)

    permute = transpose

    def flatten(self, start: int = 0, end: int = -1) -> Tensor:
        """The axes from start to end as one."""
        first, last = axes_of((start, end), max(self.ndim, 1))
        count = math.prod(self.shape[first : last + 1])
        return self.reshape(*self.shape[:first], count, *self.shape[last + 1 :])

    def squeeze(self, *axes: Any) -> Tensor:
        """Without these axes of length 1; without any argument, all of length 1."""
        return ops.squeeze(self, axes=shape_from(axes) if axes else None)

    def unsqueeze(self, *axes: Any) -> Tensor:
        """With axes of length 1 at these places of the result."""
        return ops.unsqueeze(self, axes=shape_from(axes))

    def expand(self, *shape: Any) -> Tensor:
        """Broadcast together with a shape; -1 there keeps this tensor's length."""
        return ops.expand(self, shape=shape_from(shape))

    def tile(self, *repeats: Any) -> Tensor:
        """Repeated along each axis."""
        return ops.tile(self, repeats=shape_from(repeats))

    def split(self, sizes: Any, axis: int = 0) -> tuple[Tensor, ...]:
        """Parts of these sizes, or of one size, along an axis."""
        if isinstance(sizes, tuple | list):
            parts = tuple(whole("split", "a size", size) for size in sizes)
        else:
            parts = _parts(self._length(axis), whole("split", "the size", sizes))
        return ops.split(self, sizes=parts, axis=axis)

    def chunk(self, num: int, axis: int = 0) -> tuple[Tensor, ...]:
        """`num` parts of one size along an axis, fewer where that is enough."""
        length, num = self._length(axis), whole("chunk", "the number", num)
        if num < 1:
            raise InputError(f"chunk: expected one part or more, got {num}")
        sizes = _parts(length, -(-length // num)) if length else (0,) * num
        return ops.split(self, sizes=sizes, axis=axis)

    def flip(self, *axes: Any) -> Tensor:
        """Backwards along axes, all when none is named."""
        return ops.flip(self, axes=shape_from(axes) if axes else None)

    def roll(self, shift: Any, axis: Any = None) -> Tensor:
        """Moved along an axis; what leaves at one end comes in at the other."""
        return ops.roll(self, shift=shift, axis=axis)

    def pad(
        self, pads: Any, mode: str = "constant", value: Any = 0, axes: Any = None
    ) -> Tensor:
        """With more at its ends: ((before, after), ...); see `ops.pad`."""
        return ops.pad(self, pads=pads, mode=mode, value=value, axes=axes)

    def t(self) -> Tensor:
        """A matrix's transpose; a vector as it is."""
        if self.ndim > 2:
            raise InputError(f"t: expected 2 axes or fewer, got {self.shape}; see mT")
        return ops.transpose(self)

    def unbind(self, axis: int = 0) -> tuple[Tensor, ...]:
        """The slices along an axis, without it."""
        return ops.unbind(self, axis=axis)

    @along
    def unfold(self, axis: int, size: int, step: int) -> Tensor:
        """Windows of `size` along an axis, one every `step`, as a new last axis."""
        size, step = whole("unfold", "size", size), whole("unfold", "step", step)
        return ops.unfold(self, axis=axis, size=size, step=step)

    def _length(self, axis: int) -> int:
        return self.shape[axes_of(axis, self.ndim)[0]]

    swapaxes = along(method(ops.swapaxes))
    moveaxis = along(method(ops.moveaxis))
    repeat = tile


def _parts(length: int, size: int) -> tuple[int, ...]:
    """`length` cut into parts of `size`, the last maybe shorter; at least one part."""
    if size < 1:
        raise InputError(f"split: expected a size of 1 or more, got {size}")
    full, rest = divmod(length, size)
    return (size,) * full + ((rest,) if rest or not full else ())
