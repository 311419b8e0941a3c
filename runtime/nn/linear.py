"""Linear layers and tables."""

from __future__ import annotations

from typing import Any

from burnish import ops
from burnish.backend import Array, Device
from burnish.nn import init
from burnish.nn.layer import Layer
from burnish.nn.param import Param
from burnish.tensor import Tensor


class Linear(Layer):
    """x @ weight.T + bias:  (..., in_features) -> (..., out_features)"""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        dtype: Any = "float32",
    ):
        bound = in_features**-0.5 if in_features else 0.0
        shape = (out_features, in_features)
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Param(init.uniform(bound), shape, dtype)
        self.bias = Param(init.uniform(bound), (out_features,), dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return ops.linear(x, self.weight, self.bias)


class Embedding(Layer):
    """ids (...) -> (..., embedding_dim): row `id` of weight for each id

    padding_idx: the id whose row starts as zeros and is not trained.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        dtype: Any = "float32",
    ):
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        initial = init.normal() if padding_idx is None else _normal_but(padding_idx)
        self.weight = Param(initial, (num_embeddings, embedding_dim), dtype)

    def forward(self, ids: Tensor) -> Tensor:
        return ops.embedding(self.weight, ids, padding_idx=self.padding_idx)


def _normal_but(padding_idx: int) -> init.Initializer:
    def make(shape: tuple[int, ...], dtype: Any, device: Device) -> Array:
        rows = init.normal()(shape, dtype, device)
        rows[padding_idx] = 0
        return rows

    return make
