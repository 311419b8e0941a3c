"""Padding of the last axes; one example may come without N.

padding: a number, or the last axis's (before, after), then the one's before it, as in
PyTorch. Negative numbers take away.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

from burnish import ops
from burnish.errors import InputError
from burnish.nn.core.layer import Layer
from burnish.tensor import Tensor

MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "edge"}
MODES["circular"] = "wrap"
"""PyTorch's words for ways to pad, and NumPy's."""


class _Pad(Layer):
    rank: ClassVar[int]
    mode: ClassVar[str]
    padding: Any
    value: float = 0.0

    def __init__(self, padding: Any):
        self.padding = padding

    def forward(self, x: Tensor) -> Tensor:
        """Raises InputError for another number of axes, or of paddings."""
        name = type(self).__name__
        if len(x.shape) - self.rank not in (1, 2):
            raise InputError(
                f"{name}: expected x with {self.rank + 2} axes ({self.rank + 1} for "
                f"one example), got shape {x.shape}"
            )
        ends = self.padding
        if not isinstance(ends, tuple | list):
            ends = (ends,) * (2 * self.rank)
        if len(ends) != 2 * self.rank or not all(isinstance(n, Integral) for n in ends):
            raise InputError(
                f"{name}: expected one padding or {2 * self.rank}, got {self.padding!r}"
            )
        pads = [tuple(ends[i : i + 2]) for i in range(0, len(ends), 2)][::-1]
        self._check(x, pads)
        axes = tuple(range(-self.rank, 0))
        return ops.pad(x, pads, MODES[self.mode], constant_values=self.value, axes=axes)

    def _check(self, x: Tensor, pads: Any) -> None:
        """A reflection or a turn needs enough to show."""
        room = {"reflect": 1, "circular": 0}.get(self.mode)
        if room is None:
            return
        for size, pair in zip(x.shape[-self.rank :], pads, strict=True):
            if max(pair) > size - room:
                raise InputError(
                    f"{type(self).__name__}: expected padding up to {size - room} for "
                    f"an axis of {size}, got {pair}"
                )


class _ConstantPad(_Pad):
    """(N, C, *S) -> (N, C, *P) with `value` around it"""

    mode = "zeros"

    def __init__(self, padding: Any, value: float):
        self.padding = padding
        self.value = value


class ConstantPad1d(_ConstantPad):
    __doc__ = _ConstantPad.__doc__
    rank = 1


class ConstantPad2d(_ConstantPad):
    __doc__ = _ConstantPad.__doc__
    rank = 2


class ConstantPad3d(_ConstantPad):
    __doc__ = _ConstantPad.__doc__
    rank = 3


class _ZeroPad(_Pad):
    """(N, C, *S) -> (N, C, *P) with zeros around it"""

    mode = "zeros"


class ZeroPad1d(_ZeroPad):
    __doc__ = _ZeroPad.__doc__
    rank = 1


class ZeroPad2d(_ZeroPad):
    __doc__ = _ZeroPad.__doc__
    rank = 2


class ZeroPad3d(_ZeroPad):
    __doc__ = _ZeroPad.__doc__
    rank = 3


class _ReflectionPad(_Pad):
    """(N, C, *S) -> (N, C, *P), mirrored at its ends, which are not repeated"""

    mode = "reflect"


class ReflectionPad1d(_ReflectionPad):
    __doc__ = _ReflectionPad.__doc__
    rank = 1


class ReflectionPad2d(_ReflectionPad):
    __doc__ = _ReflectionPad.__doc__
    rank = 2


class ReflectionPad3d(_ReflectionPad):
    __doc__ = _ReflectionPad.__doc__
    rank = 3


class _ReplicationPad(_Pad):
    """(N, C, *S) -> (N, C, *P), its ends repeated"""

    mode = "replicate"


class ReplicationPad1d(_ReplicationPad):
    __doc__ = _ReplicationPad.__doc__
    rank = 1


class ReplicationPad2d(_ReplicationPad):
    __doc__ = _ReplicationPad.__doc__
    rank = 2


class ReplicationPad3d(_ReplicationPad):
    __doc__ = _ReplicationPad.__doc__
    rank = 3


class _CircularPad(_Pad):
    """(N, C, *S) -> (N, C, *P), going on at the other end"""

    mode = "circular"


class CircularPad1d(_CircularPad):
    __doc__ = _CircularPad.__doc__
    rank = 1


class CircularPad2d(_CircularPad):
    __doc__ = _CircularPad.__doc__
    rank = 2


class CircularPad3d(_CircularPad):
    __doc__ = _CircularPad.__doc__
    rank = 3
