"""Dropout and Gaussian noise, which act only in training: on an autodiff device."""

from __future__ import annotations

from typing import Any, ClassVar

from burnish import ops
from burnish.backend import Device
from burnish.draws import keep_mask, normal
from burnish.errors import InputError
from burnish.nn.core.layer import Layer
from burnish.ops._kernels.slopes import dropped
from burnish.tensor import Tensor

_FLOOR = 1.7580993408473766  # what SELU tends to far below 0, without its sign


class Dropout(Layer):
    """x -> x with elements set to 0 with probability p, the others divided by 1 - p"""

    def __init__(self, p: float = 0.5):
        if not 0 <= p <= 1:
            raise InputError(f"{type(self).__name__}: expected p from 0 to 1, got {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        return self._drop(x, self._mask(x))

    def _drop(self, x: Tensor, shape: tuple[int, ...]) -> Tensor:
        kept = keep_mask(shape, 1 - self.p, Device(x.device))
        return dropped(x, kept, factor=1 / (1 - self.p) if self.p < 1 else 1.0)

    def _mask(self, x: Tensor) -> tuple[int, ...]:
        return x.shape


class _ChannelDropout(Dropout):
    """(N, C, *S) -> the same shape: whole channels set to 0, the others scaled"""

    alone: ClassVar[int | None] = None  # how many axes an example without N has

    def _mask(self, x: Tensor) -> tuple[int, ...]:
        return _channels(x, self.alone)


class Dropout1d(_ChannelDropout):
    __doc__ = _ChannelDropout.__doc__
    alone = 2


class Dropout2d(_ChannelDropout):
    __doc__ = _ChannelDropout.__doc__


class Dropout3d(_ChannelDropout):
    __doc__ = _ChannelDropout.__doc__
    alone = 4


class AlphaDropout(Dropout):
    """Dropout that keeps mean 0 and variance 1: dropped values become SELU's floor"""

    def _drop(self, x: Tensor, shape: tuple[int, ...]) -> Tensor:
        if self.p >= 1:
            return x * 0
        kept = _kept(x, shape, 1 - self.p)
        scale = ((_FLOOR**2 * self.p + 1) * (1 - self.p)) ** -0.5
        shift = (kept - 1 + self.p) * (_FLOOR * scale)
        return x * (kept * scale) + shift


class FeatureAlphaDropout(AlphaDropout):
    """(N, C, *S) -> the same shape: `AlphaDropout` of whole channels"""

    def _mask(self, x: Tensor) -> tuple[int, ...]:
        return _channels(x, None)


class GaussianNoise(Layer):
    """x -> x with normal noise of deviation `std` added"""

    def __init__(self, std: float):
        self.std = std

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.std == 0:
            return x
        return x + normal(x.shape, 0.0, self.std, x.dtype, Device(x.device))


def _kept(x: Tensor, shape: tuple[int, ...], share: float) -> Any:
    """1 with probability `share`, else 0, in x's dtype."""
    return ops.cast(keep_mask(shape, share, Device(x.device)), dtype=x.dtype)


def _channels(x: Tensor, alone: int | None) -> tuple[int, ...]:
    lead = 1 if len(x.shape) == alone else 2
    return x.shape[:lead] + (1,) * (len(x.shape) - lead)
