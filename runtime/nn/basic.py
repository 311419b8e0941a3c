"""Layers that do nothing of their own, and the one that holds others."""

from __future__ import annotations

from typing import Any

from burnish.nn.layer import Layer
from burnish.nn.module import Module
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


class Sequential(Module):
    """Layers one after another; `Sequential(a, b)` or `Sequential({"name": a})`"""

    def __init__(self, *layers: Any):
        if len(layers) == 1 and isinstance(layers[0], dict):
            named = layers[0]
        else:
            named = {str(i): layer for i, layer in enumerate(layers)}
        vars(self).update(named)

    def forward(self, x: Any) -> Any:
        for layer in self:
            x = layer(x)
        return x

    def __iter__(self) -> Any:
        return (item for item in vars(self).values() if isinstance(item, Module))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, place: Any) -> Any:
        chosen = list(self)[place]
        return Sequential(*chosen) if isinstance(place, slice) else chosen

    def __setitem__(self, place: int, layer: Module) -> None:
        names = [name for name, item in vars(self).items() if isinstance(item, Module)]
        vars(self)[names[place]] = layer
