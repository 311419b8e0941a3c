"""One step of recurrent layers. N batch, I inputs, H hidden.

x is (N, I), states are (N, H); one example may come without N. States that are not
given are zeros.
"""

from __future__ import annotations

from typing import Any, ClassVar

from burnish import ops
from burnish.errors import InputError
from burnish.nn import init
from burnish.nn.core.layer import Layer
from burnish.nn.core.param import Param
from burnish.tensor import Tensor


class _Cell(Layer):
    gates: ClassVar[int]
    input_size: int
    hidden_size: int
    weight_ih: Param
    weight_hh: Param
    bias_ih: Param | None
    bias_hh: Param | None

    def _build(self, input_size: int, hidden_size: int, bias: bool, dtype: Any) -> None:
        draw, rows = init.uniform(hidden_size**-0.5), self.gates * hidden_size
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        self.weight_ih = Param(draw, (rows, input_size), dtype)
        self.weight_hh = Param(draw, (rows, hidden_size), dtype)
        self.bias_ih = Param(draw, (rows,), dtype) if bias else None
        self.bias_hh = Param(draw, (rows,), dtype) if bias else None

    def _halves(self, x: Tensor, h: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """The contributions of x and h to the gates, and h."""
        if len(x.shape) not in (1, 2) or x.shape[-1] != self.input_size:
            raise InputError(
                f"{type(self).__name__}: expected x (N, {self.input_size}) or "
                f"({self.input_size},), got shape {x.shape}"
            )
        h = self._state(x, h)
        return (
            ops.linear(x, self.weight_ih, self.bias_ih),
            ops.linear(h, self.weight_hh, self.bias_hh),
            h,
        )

    def _state(self, x: Tensor, state: Tensor | None) -> Tensor:
        shape = (*x.shape[:-1], self.hidden_size)
        if state is None:
            return Tensor.zeros(*shape, dtype=x.dtype, device=x.device)
        if state.shape != shape:
            raise InputError(
                f"{type(self).__name__}: expected a state {shape} beside x {x.shape}, "
                f"got {state.shape}"
            )
        return state


class RNNCell(_Cell):
    """x, h -> the next h; nonlinearity "tanh" or "relu" """

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        dtype: Any = "float32",
    ):
        if nonlinearity not in ("tanh", "relu"):
            raise InputError(
                f"RNNCell: expected nonlinearity 'tanh' or 'relu', got {nonlinearity!r}"
            )
        self._build(input_size, hidden_size, bias, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, x: Tensor, h: Tensor | None = None) -> Tensor:
        a, b, _ = self._halves(x, h)
        return ops.tanh(a + b) if self.nonlinearity == "tanh" else ops.relu(a + b)


class LSTMCell(_Cell):
    """x, (h, c) -> the next (h, c)"""

    gates = 4

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        dtype: Any = "float32",
    ):
        self._build(input_size, hidden_size, bias, dtype)

    def forward(
        self, x: Tensor, states: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        h, c = (None, None) if states is None else states
        a, b, h = self._halves(x, h)
        take, keep, new, show = ops.split(a + b, num=4, axis=-1)
        c = ops.sigmoid(keep) * self._state(x, c) + ops.sigmoid(take) * ops.tanh(new)
        return ops.sigmoid(show) * ops.tanh(c), c


class GRUCell(_Cell):
    """x, h -> the next h"""

    gates = 3

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        dtype: Any = "float32",
    ):
        self._build(input_size, hidden_size, bias, dtype)

    def forward(self, x: Tensor, h: Tensor | None = None) -> Tensor:
        a, b, h = self._halves(x, h)
        reset_x, update_x, new_x = ops.split(a, num=3, axis=-1)
        reset_h, update_h, new_h = ops.split(b, num=3, axis=-1)
        update = ops.sigmoid(update_x + update_h)
        new = ops.tanh(new_x + ops.sigmoid(reset_x + reset_h) * new_h)
        return new + update * (h - new)
