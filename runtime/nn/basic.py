"""Layers without arithmetic: Identity, Flatten, Unflatten, Permute."""

from __future__ import annotations

from typing import Any

from burnish.autodiff import Variable
from burnish.nn.core.layer import Layer
from burnish.tensor import Tensor


class Identity(Layer):
    """x -> x"""

    def forward(self, x: Any) -> Any:
        return x


class Flatten(Layer):
    """(N, *S) -> (N, size): the axes from start_dim to end_dim as one"""

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, x: Tensor) -> Tensor:
        x = x if isinstance(x, Variable) else Tensor(x)  # an array flattens wholly
        return x.flatten(self.start_dim, self.end_dim)


class Unflatten(Layer):
    """The axis `dim` as several: (..., n, ...) -> (..., *unflattened_size, ...)"""

    def __init__(self, dim: int, unflattened_size: tuple[int, ...]):
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, x: Tensor) -> Tensor:
        axis = self.dim % len(x.shape)
        shape = x.shape
        return x.reshape(*shape[:axis], *self.unflattened_size, *shape[axis + 1 :])


class Permute(Layer):
    """The axes in another order: (N, C, H, W) -> (N, H, W, C) with (0, 2, 3, 1)"""

    def __init__(self, dims: tuple[int, ...]):
        self.dims = dims

    def forward(self, x: Tensor) -> Tensor:
        return x.transpose(*self.dims)
