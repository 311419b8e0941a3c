"""Scores along an axis to probabilities: Softmax and its variants."""

from __future__ import annotations

from burnish import ops
from burnish.errors import InputError
from burnish.nn.core.layer import Layer
from burnish.tensor import Tensor


class Softmax(Layer):
    """exp(x), scaled to add up to 1 along axis `dim`"""

    def __init__(self, dim: int = -1):
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        return ops.softmax(x, axis=self.dim)


class Softmin(Layer):
    """softmax(-x) along axis `dim`"""

    def __init__(self, dim: int = -1):
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        return ops.softmin(x, axis=self.dim)


class Softmax2d(Layer):
    """(N, C, H, W) or (C, H, W) -> the same shape: softmax over the channels"""

    def forward(self, x: Tensor) -> Tensor:
        if len(x.shape) not in (3, 4):
            raise InputError(f"Softmax2d: expected 3 or 4 axes, got shape {x.shape}")
        return ops.softmax(x, axis=-3)


class LogSoftmax(Layer):
    """log(softmax(x)) along axis `dim`"""

    def __init__(self, dim: int = -1):
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        return ops.log_softmax(x, axis=self.dim)
