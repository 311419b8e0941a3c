"""Recurrent layers. T time, N batch, I inputs, H hidden, D directions, L layers.

x is (T, N, I), or (N, T, I) with batch_first, or (T, I) for one example; results end in
D * H; states are (L * D, N, H). lengths (N,), in any order: where each example ends;
behind its end results are 0, and the last states are those at its end, as with
PyTorch's packed sequences. Parameters as in PyTorch: weight_ih_l0,
weight_hh_l0, bias_ih_l0, bias_hh_l0, `_reverse` for the other direction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from burnish import ops
from burnish.errors import InputError
from burnish.nn import init
from burnish.nn.core.layer import Layer
from burnish.nn.core.param import Param
from burnish.nn.dropout import Dropout
from burnish.nn.lowbit.input_quantizer import InputQuantizer
from burnish.ops._kernels import cells
from burnish.steps import step
from burnish.tensor import Tensor


class _Recurrent(Layer):
    _rounds_itself = True
    gates: ClassVar[int]
    input_size: int
    hidden_size: int
    num_layers: int
    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool

    def _build(self, dtype: Any, proj_size: int = 0, peepholes: bool = False) -> None:
        if not self.num_layers:
            raise InputError(
                f"{type(self).__name__}: expected layers, got num_layers=0"
            )
        hidden = self.hidden_size
        out = proj_size or hidden
        draw = init.uniform(hidden**-0.5)
        rows = self.gates * hidden
        for layer in range(self.num_layers):
            width = self.input_size if layer == 0 else out * len(self._ends)
            shapes: dict[str, tuple[int, ...]]
            shapes = {"weight_ih": (rows, width), "weight_hh": (rows, out)}
            if self.bias:
                shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
            if proj_size:
                shapes["weight_hr"] = (out, hidden)
            if peepholes:
                shapes["peephole"] = (3 * hidden,)
            for end in self._ends:
                for name, shape in shapes.items():
                    setattr(self, f"{name}_l{layer}{end}", Param(draw, shape, dtype))

    @property
    def _ends(self) -> tuple[str, ...]:
        return ("", "_reverse") if self.bidirectional else ("",)

    def _linears(self, *names: str, inner: bool) -> Callable[..., Iterator[Any]]:
        """(x, *biases) -> a product of x, rounded, for each of these weights.

        inner: x is states, or a further layer's: dynamic quantizers alone round it.
        """
        if self.on_input is not None:
            found = self.on_input
            is_dynamic = isinstance(found, InputQuantizer) and found.scales is None
            if is_dynamic or not inner:
                from burnish.nn.lowbit import integers  # for quantized inputs alone

                return integers.linears(self, found, names)

        def every(x: Tensor, *biases: Any) -> Iterator[Any]:
            for name, bias in zip(names, biases, strict=True):
                yield ops.linear(x, getattr(self, name), bias)

        return every

    def _step(self, end: str) -> tuple[cells.Step, Any]:
        """One direction of one layer: its step and the bias of its inputs."""
        raise TypeError(f"{type(self).__name__} has no step")

    def _run(
        self, x: Tensor, states: Any, lengths: Any
    ) -> tuple[Tensor, tuple[Any, ...]]:
        """x (T, N, I) through all layers; states, old and new, are (L * D, N, H)"""
        last = []
        drop = Dropout(self.dropout)
        drop.device = self.device
        for layer in range(self.num_layers):
            if layer:
                x = drop(x)
            ends = [f"_l{layer}{end}" for end in self._ends]
            steps, biases = zip(*map(self._step, ends), strict=True)
            weights = (f"weight_ih{end}" for end in ends)
            inputs = self._linears(*weights, inner=layer > 0)
            results = []
            for i, z in enumerate(inputs(x, *biases)):
                place = layer * len(self._ends) + i
                start = tuple(state[place] for state in states)
                y, after = cells.scan(
                    steps[i], z, start, reverse=i > 0, lengths=lengths
                )
                results.append(y)
                last.append(after)
            x = ops.concat(results, axis=-1) if len(results) > 1 else results[0]
        return x, tuple(ops.stack(each, axis=0) for each in zip(*last, strict=True))

    def _forward(
        self, x: Tensor, states: Any, lengths: Any, sizes: tuple[int, ...]
    ) -> Any:
        """x and states as the caller has them; the results in the same form"""
        if len(x.shape) not in (2, 3) or x.shape[-1] != self.input_size:
            raise InputError(
                f"{type(self).__name__}: expected x with 3 axes (2 for one example), "
                f"the last of {self.input_size}, got shape {x.shape}"
            )
        single, swap = len(x.shape) == 2, self.batch_first and len(x.shape) == 3
        if single:
            x = x.reshape(x.shape[0], 1, x.shape[1])
        x = x.transpose((1, 0, 2)) if swap else x
        count, n = self.num_layers * len(self._ends), x.shape[1]
        if states is None:
            states = tuple(self.device.xp.zeros((count, n, s), x.dtype) for s in sizes)
        elif single:
            states = tuple(s.reshape(count, 1, s.shape[-1]) for s in states)
        for state, size in zip(states, sizes, strict=True):
            if tuple(state.shape) != (count, n, size):
                raise InputError(
                    f"{type(self).__name__}: expected states {(count, n, size)}, "
                    f"got {tuple(state.shape)}"
                )
        if lengths is not None:
            sizes = tuple(x.shape[:2])
            lengths = _checked(
                lengths, device=self.device, sizes=sizes, who=type(self).__name__
            )
        y, last = self._run(x, states, lengths)
        if single:
            return y.reshape(y.shape[0], y.shape[2]), tuple(s[:, 0] for s in last)
        return (y.transpose((1, 0, 2)) if swap else y), last

    def _bias_sum(self, end: str) -> Any:
        if not self.bias:
            return None
        return getattr(self, f"bias_ih{end}") + getattr(self, f"bias_hh{end}")


@step
def _checked(lengths: Any, *, device: Any, sizes: tuple[int, ...], who: str) -> Any:
    found = device.put(lengths).reshape(-1)
    if len(found) != sizes[1] or found.min() < 1 or found.max() > sizes[0]:
        raise InputError(
            f"{who}: expected {sizes[1]} lengths from 1 to {sizes[0]}, "
            f"got {found.tolist()}"
        )
    return found


class LSTM(_Recurrent):
    """x, (h, c) -> every step's result, (the last h, the last c)

    proj_size: h has this size instead of H. peepholes: the gates see c too, through
    peephole_l0 (3 * H,): the weights of the gates i, o and f.
    """

    gates = 4

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        dtype: Any = "float32",
        peepholes: bool = False,
    ):
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = dropout
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self.peepholes = peepholes
        self._build(dtype, proj_size, peepholes)

    def forward(
        self,
        x: Tensor,
        states: tuple[Tensor, Tensor] | None = None,
        lengths: Any = None,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        sizes = (self.proj_size or self.hidden_size, self.hidden_size)
        y, (h, c) = self._forward(x, states, lengths, sizes)
        return y, (h, c)

    def _step(self, end: str) -> tuple[cells.Step, Any]:
        name = f"weight_hh{end}"
        step = cells.lstm_step(
            getattr(self, name),
            "ifco",
            (ops.sigmoid, ops.tanh, ops.tanh),
            peephole=getattr(self, f"peephole{end}") if self.peepholes else None,
            projection=getattr(self, f"weight_hr{end}") if self.proj_size else None,
            product=None if self.on_input is None else self._product(name),
        )
        return step, self._bias_sum(end)

    def _product(self, name: str) -> Callable[[Any], Any]:
        """States, rounded as the input is, times a weight."""
        every = self._linears(name, inner=True)
        return lambda h: next(every(h, None))


class GRU(_Recurrent):
    """x, h -> every step's result, the last h

    reset_after: the reset gate acts behind the product of h and the candidate's
    weights, as in PyTorch; else on h before it, as the GRU was published.
    """

    gates = 3

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: Any = "float32",
        reset_after: bool = True,
    ):
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = dropout
        self.bidirectional = bidirectional
        self.reset_after = reset_after
        self._build(dtype)

    def forward(
        self, x: Tensor, h: Tensor | None = None, lengths: Any = None
    ) -> tuple[Tensor, Tensor]:
        states = None if h is None else (h,)
        y, (last,) = self._forward(x, states, lengths, (self.hidden_size,))
        return y, last

    def _step(self, end: str) -> tuple[cells.Step, Any]:
        step = cells.gru_step(
            getattr(self, f"weight_hh{end}"),
            getattr(self, f"bias_hh{end}") if self.bias else None,
            "rzh",
            (ops.sigmoid, ops.tanh),
            linear_before_reset=self.reset_after,
        )
        return step, getattr(self, f"bias_ih{end}") if self.bias else None


class RNN(_Recurrent):
    """x, h -> every step's result, the last h; nonlinearity "tanh" or "relu" """

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: Any = "float32",
    ):
        if nonlinearity not in ("tanh", "relu"):
            raise InputError(
                f"RNN: expected nonlinearity 'tanh' or 'relu', got {nonlinearity!r}"
            )
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.nonlinearity = nonlinearity
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = dropout
        self.bidirectional = bidirectional
        self._build(dtype)

    def forward(
        self, x: Tensor, h: Tensor | None = None, lengths: Any = None
    ) -> tuple[Tensor, Tensor]:
        states = None if h is None else (h,)
        y, (last,) = self._forward(x, states, lengths, (self.hidden_size,))
        return y, last

    def _step(self, end: str) -> tuple[cells.Step, Any]:
        activation = ops.tanh if self.nonlinearity == "tanh" else ops.relu
        step = cells.rnn_step(getattr(self, f"weight_hh{end}"), activation)
        return step, self._bias_sum(end)
