"""Linear layers and the blocks made of them."""

from __future__ import annotations

from typing import Any

from burnish import ops
from burnish.errors import InputError
from burnish.nn import init
from burnish.nn.core.layer import Layer
from burnish.nn.core.param import Param
from burnish.nn.dropout import Dropout
from burnish.tensor import Tensor


class Linear(Layer):
    """x @ weight.T + bias:  (..., in_features) -> (..., out_features)

    transposed: the weight is (in_features, out_features), as GPT-2's Conv1D has it, and
    the value x @ weight + bias.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        dtype: Any = "float32",
        *,
        transposed: bool = False,
    ):
        bound = in_features**-0.5 if in_features else 0.0
        shape = (out_features, in_features)
        self.in_features = in_features
        self.out_features = out_features
        self.transposed = transposed
        self.weight = Param(
            init.uniform(bound), shape[::-1] if transposed else shape, dtype
        )
        self.bias = Param(init.uniform(bound), (out_features,), dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        weight: Any = self.weight
        made = weight.product(x, self.transposed) if weight.derived else None
        if made is None:
            return self._product(x, weight, self.bias)
        return made if self.bias is None else made + self.bias

    def _product(self, x: Any, weight: Any, bias: Any = None) -> Any:
        return ops.linear(x, weight.T if self.transposed else weight, bias)

    def _in_integers(self, x: Any) -> Any:
        from burnish.nn.lowbit import integers  # for quantized inputs alone

        return integers.exact(self, x, self._product, axis=int(self.transposed))


class Bilinear(Layer):
    """a @ weight[o] @ b + bias: (..., in1_features), (..., in2_features) -> (..., o)"""

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        dtype: Any = "float32",
    ):
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        draw = init.uniform(in1_features**-0.5)
        shape = (out_features, in1_features, in2_features)
        self.weight = Param(draw, shape, dtype)
        self.bias = Param(draw, (out_features,), dtype) if bias else None

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """Raises InputError unless a and b agree in all axes but the last."""
        want = (*a.shape[:-1], self.in1_features), (*a.shape[:-1], self.in2_features)
        if (a.shape, b.shape) != want:
            raise InputError(
                f"Bilinear: expected (..., {self.in1_features}) and "
                f"(..., {self.in2_features}), got {a.shape} and {b.shape}"
            )
        outs, ins, width = self.weight.shape
        rows = a.reshape(-1, ins) @ self.weight.transpose(1, 0, 2).reshape(ins, -1)
        y = rows.reshape(-1, outs, width) @ b.reshape(-1, width, 1)
        y = y.reshape(*a.shape[:-1], outs)
        return y if self.bias is None else y + self.bias


class PositionWiseFeedForward(Layer):
    """(..., d_model) -> (..., d_model) by way of d_ff: outer(dropout(act(inner(x))))"""

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        dropout: float = 0.1,
        act: Any = "gelu",
        dtype: Any = "float32",
    ):
        self.d_model = d_model
        self.d_ff = d_ff
        self.linear_inner = Linear(d_model, d_ff, dtype=dtype)
        from burnish.nn.choose import activation  # brings every activation

        self.act = activation(act)
        self.dropout = Dropout(dropout)
        self.linear_outer = Linear(d_ff, d_model, dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear_outer(self.dropout(self.act(self.linear_inner(x))))


class SwiGLU(Layer):
    """(..., d_input) -> (..., d_output): silu(inner(x)) * outer(x)"""

    def __init__(
        self, d_input: int, d_output: int, bias: bool = False, dtype: Any = "float32"
    ):
        self.d_input = d_input
        self.d_output = d_output
        self.bias = bias
        self.linear_inner = Linear(d_input, d_output, bias, dtype)
        self.linear_outer = Linear(d_input, d_output, bias, dtype)

    def forward(self, x: Tensor) -> Tensor:
        return ops.silu(self.linear_inner(x)) * self.linear_outer(x)
