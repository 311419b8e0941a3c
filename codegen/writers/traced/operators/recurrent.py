"""LSTM, GRU and RNN: layers in PyTorch's layout, functions in ONNX's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burnish.codegen.ops.layers.recurrent import GATES
from burnish.codegen.writers.traced.emitter import Emitter
from burnish.codegen.writers.traced.table import writes
from burnish.nn.core.module import Module
from burnish.nn.lowbit.input_quantizer import InputQuantizer

_CELLS = ("LSTM", "GRU", "RNN")
_GATES = {**GATES, "peepholes": (0,)}


@writes(**{f"nn.{op}": op for op in _CELLS})
def layers(
    emit: Emitter, x: Any, states: Any = None, lengths: Any = None, *, op: str
) -> Any:
    """All layers of a recurrent module, one node each."""
    layer: Any = emit.current.function
    if getattr(layer, "proj_size", 0):
        raise emit.cannot("an LSTM with proj_size")
    if isinstance(layer.on_input, InputQuantizer) and layer.on_input.scales is None:
        raise emit.cannot(f"an {op} that rounds its states at every step")
    single = len(x.shape) == 2
    y = emit("Unsqueeze", x, emit.ints([1])) if single else emit.value(x)
    if layer.batch_first and not single:
        y = emit("Transpose", y, perm=[1, 0, 2])
    count = 2 if layer.bidirectional else 1
    given = _states(emit, op, states, single, layer.num_layers, count)
    if lengths is not None:
        lengths = emit("Reshape", emit.cast(lengths, np.int32), emit.ints([-1]))
    last = []
    for i in range(layer.num_layers):
        ends = (f"_l{i}", f"_l{i}_reverse")[:count]
        y, *after = _node(emit, op, layer, ends, y, lengths, given[i])
        last.append(after)
    if layer.batch_first and not single:
        y = emit("Transpose", y, perm=[1, 0, 2])
    together = [
        each[0] if len(each) == 1 else emit("Concat", *each, axis=0)
        for each in zip(*last, strict=True)
    ]
    if single:
        y = emit("Squeeze", y, emit.ints([1]))
        together = [emit("Squeeze", state, emit.ints([1])) for state in together]
    return (y, tuple(together)) if op == "LSTM" else (y, together[0])


def _states(
    emit: Emitter, op: str, states: Any, single: bool, layers: int, ends: int
) -> list[list[Any]]:
    """The initial states of every layer."""
    if states is None:
        return [[] for _ in range(layers)]
    parts = list(states) if isinstance(states, list | tuple) else [states]
    if single:
        parts = [emit("Unsqueeze", part, emit.ints([1])) for part in parts]
    if layers == 1:
        return [parts]
    axis = emit.ints([0])
    return [
        [
            emit(
                "Slice", part, emit.ints([i * ends]), emit.ints([(i + 1) * ends]), axis
            )
            for part in parts
        ]
        for i in range(layers)
    ]


def _node(
    emit: Emitter,
    op: str,
    layer: Any,
    ends: Sequence[str],
    x: Any,
    lengths: Any,
    states: list[Any],
) -> tuple[Any, ...]:
    """One layer: (T, N, I) -> (T, N, D * H), and the last states (D, N, H)."""
    weight = _stacked(emit, op, layer, [[f"weight_ih{end}"] for end in ends])
    inner = _stacked(emit, op, layer, [[f"weight_hh{end}"] for end in ends])
    bias = None
    if layer.bias:
        both = [[f"bias_ih{end}", f"bias_hh{end}"] for end in ends]
        bias = _stacked(emit, op, layer, both)
    options: dict[str, Any] = {"hidden_size": layer.hidden_size}
    if len(ends) == 2:
        options["direction"] = "bidirectional"
    if op == "GRU" and layer.reset_after:
        options["linear_before_reset"] = 1
    if op == "RNN":
        options["activations"] = [layer.nonlinearity.capitalize()] * len(ends)
    if getattr(layer, "peepholes", False):
        both = [[f"peephole{end}"] for end in ends]
        states = [*(states or (None, None)), _stacked(emit, "peepholes", layer, both)]
    y, *last = emit(
        op, x, weight, inner, bias, lengths, *states,
        outputs=3 if op == "LSTM" else 2, **options,
    )  # fmt: skip
    if len(ends) == 1:
        return (emit("Squeeze", y, emit.ints([1])), *last)
    transposed = emit("Transpose", y, perm=[0, 2, 1, 3])
    return (
        emit("Reshape", transposed, emit.ints([0, 0, 2 * layer.hidden_size])),
        *last,
    )


def _stacked(emit: Emitter, op: str, layer: Module, names: list[list[str]]) -> Any:
    """Parameters of each direction in ONNX's order of gates: (D, ...)"""
    path = emit.current.path[-1][0]
    arrays = [
        np.concatenate([_gates(np.asarray(getattr(layer, n).data), op) for n in each])
        for each in names
    ]
    label = ".".join(filter(None, (path, names[0][0])))
    return emit.constant(np.stack(arrays), label)


def _gates(array: np.ndarray, op: str) -> np.ndarray:
    parts = np.split(array, len(_GATES[op]))
    return np.concatenate([parts[i] for i in _GATES[op]])


@writes(**{op.lower(): op for op in _CELLS})
def one_layer(
    emit: Emitter,
    x: Any,
    weight: Any,
    recurrence: Any,
    bias: Any = None,
    lengths: Any = None,
    initial_h: Any = None,
    *more: Any,
    op: str,
    initial_c: Any = None,
    peephole: Any = None,
    activations: Any = None,
    input_forget: bool = False,
    linear_before_reset: bool = False,
    layout: int = 0,
    dynamic: bool = False,
    **options: Any,
) -> Any:
    if dynamic:
        raise emit.cannot(f"an {op} that rounds its states at every step")
    if more:
        initial_c, peephole = (*more, initial_c, peephole)[:2]
    count = None if lengths is None else emit.cast(lengths, np.int32)
    after = (initial_c, peephole) if op == "LSTM" else ()
    asked = None if activations is None else list(activations)
    if layout:  # onnxruntime takes time first only
        x, initial_h, initial_c = (
            None if part is None else emit("Transpose", part, perm=[1, 0, 2])
            for part in (x, initial_h, initial_c)
        )
        after = (initial_c, peephole) if op == "LSTM" else ()
    kept: dict[str, Any] = {
        k: list(v) if isinstance(v, tuple) else v for k, v in options.items()
    }
    y, *last = emit(
        op, x, weight, recurrence, bias, count, initial_h, *after,
        outputs=3 if op == "LSTM" else 2, hidden_size=recurrence.shape[-1],
        activations=asked, input_forget=int(input_forget) or None,
        linear_before_reset=int(linear_before_reset) or None, **kept,
    )  # fmt: skip
    if layout:
        y = emit("Transpose", y, perm=[2, 0, 1, 3])
        last = [emit("Transpose", state, perm=[1, 0, 2]) for state in last]
    return (y, *last)
