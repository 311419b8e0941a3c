"""Linear layers and tables."""

from __future__ import annotations

from typing import Any

from burnish import ops
from burnish.nn import init
from burnish.nn.module import Module
from burnish.nn.param import Param
from burnish.tensor import Tensor


class Linear(Module):
    """x @ weight.T + bias:  (..., in_features) -> (..., out_features)"""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        dtype: Any = "float32",
    ):
        bound = in_features**-0.5
        shape = (out_features, in_features)
        self.weight = Param(init.uniform(bound), shape, dtype)
        self.bias = Param(init.uniform(bound), (out_features,), dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return ops.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        out_features, in_features = self.weight.shape
        return f"{in_features}, {out_features}" + (
            "" if self.bias is not None else ", bias=False"
        )
