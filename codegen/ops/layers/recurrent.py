"""Recurrent networks: PyTorch's layer where it covers the node, else a call.

ONNX results are (T, D, N, H) and states (D, N, H), T time, N batch, D directions; the
layers' results are (T, N, D * H). ONNX's gates stand in another order.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from burnish.codegen.ops.quantized.quantize import on_input
from burnish.codegen.ops.rule import costs
from burnish.codegen.ops.rule.expressions import Inline, call, layer, operand, owned
from burnish.codegen.ops.rule.registry import NodeContext, Result, onnx_op
from burnish.codegen.ops.rule.traits import OWN_SHAPE, RECURRENT, UNBOUNDED
from burnish.codegen.ops.rule.words import WHOLE, size, unpacked
from burnish.codegen.ops.shapes import layers
from burnish.codegen.program import (
    Assign,
    Expression,
    ListOrTuple,
    Literal,
    Method,
    Shape,
    Subscript,
    Value,
    Weight,
)

_ORDER = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
"""The positions of PyTorch's gates (i f g o; r z n) among ONNX's (i o f c; z r h)."""
GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}
"""The positions of ONNX's gates among PyTorch's."""


def _usual(given: list[str] | None, names: list[str]) -> bool:
    """Whether the activations are the usual ones, in every direction."""
    lowered = [name.lower() for name in given or names]
    return lowered == [name.lower() for name in names] * (len(lowered) // len(names))


def _states(*initial: Expression | None) -> tuple[Expression, ...] | None:
    """The initial states: all of them, none of them (), or None for some only."""
    given = tuple(state for state in initial if state is not None)
    return given if len(given) in (0, len(initial)) else None


def _layer_or_call(
    kind: str,
    inputs: tuple[Any, ...],
    states: tuple[Expression, ...] | None,
    of_layer: dict[str, Any],
    of_call: dict[str, Any],
    node: NodeContext,
    *,
    activation_alpha: list[float] | None = None,
    activation_beta: list[float] | None = None,
    activations: list[str] | None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
) -> Result:
    """A layer where there are states for one and it covers the rest of the node."""
    X, W, R, B, sequence_lens = inputs[:5]
    plain = clip is None and not layout
    forward = sequence_lens is None and direction != "reverse"
    if states is not None and plain and forward and owned(W, R, B):
        return _layer(kind, X, W, R, B, states, of_layer, node)
    hints = ("y", "h", "c") if kind == "LSTM" else ("y", "h")
    options: dict[str, Any] = {"direction": direction, "activations": activations}
    options |= {
        "activation_alpha": activation_alpha,
        "activation_beta": activation_beta,
    }
    options |= {"clip": clip} | of_call | {"layout": layout}
    parts = unpacked(node, call(kind.lower(), *inputs, **options), *hints)
    return parts[: len(node.outputs)]


_declared = partial(
    onnx_op,
    since=7,
    traits=OWN_SHAPE | UNBOUNDED | RECURRENT,
    shapes=layers.recurrent,
    macs=costs.recurrent,
    weights=(1, 2, 3),
    options=_layer_or_call,
)


@_declared("LSTM")
def lstm(
    X: Expression,
    W: Expression,
    R: Expression,
    B: Expression | None = None,
    sequence_lens: Expression | None = None,
    initial_h: Expression | None = None,
    initial_c: Expression | None = None,
    P: Expression | None = None,
    *,
    activations: list[str] | None = None,
    input_forget: int = 0,
    node: NodeContext,
    **options: Any,
) -> Result:
    usual = _usual(activations, ["Sigmoid", "Tanh", "Tanh"])
    states = _states(initial_h, initial_c)
    fits = usual and not input_forget and P is None
    return _layer_or_call(
        "LSTM",
        (X, W, R, B, sequence_lens, initial_h, initial_c, P),
        states if fits else None,
        {},
        {"input_forget": bool(input_forget), "dynamic": node.on_input is not None},
        node,
        activations=None if usual else activations,
        **options,
    )


@_declared("GRU")
def gru(
    X: Expression,
    W: Expression,
    R: Expression,
    B: Expression | None = None,
    sequence_lens: Expression | None = None,
    initial_h: Expression | None = None,
    *,
    activations: list[str] | None = None,
    linear_before_reset: int = 0,
    node: NodeContext,
    **options: Any,
) -> Result:
    usual = _usual(activations, ["Sigmoid", "Tanh"])
    return _layer_or_call(
        "GRU",
        (X, W, R, B, sequence_lens, initial_h),
        _states(initial_h) if usual else None,
        {"reset_after": bool(linear_before_reset)},
        {"linear_before_reset": bool(linear_before_reset)},
        node,
        activations=None if usual else activations,
        **options,
    )


@_declared("RNN")
def rnn(
    X: Expression,
    W: Expression,
    R: Expression,
    B: Expression | None = None,
    sequence_lens: Expression | None = None,
    initial_h: Expression | None = None,
    *,
    activations: tuple[str, ...] | list[str] = ("Tanh", "Tanh"),
    node: NodeContext,
    **options: Any,
) -> Result:
    usual = _usual(list(activations), ["Tanh"])
    relu = _usual(list(activations), ["Relu"])
    return _layer_or_call(
        "RNN",
        (X, W, R, B, sequence_lens, initial_h),
        _states(initial_h) if usual or relu else None,
        {"nonlinearity": "relu"} if relu else {},
        {},
        node,
        activations=None if usual else list(activations),
        **options,
    )


@onnx_op("Recurrent", domain="burnish", traits=OWN_SHAPE)
def recurrent(
    x: Expression,
    *given: Expression,
    kind: str,
    nonlinearity: str,
    layers: int = 1,
    directions: int = 1,
    bias: int = 1,
    peepholes: int = 0,
    reset_after: int = 1,
    batch_first: int = 0,
    node: NodeContext,
) -> Result:
    """Layers that follow each other; y (T, N, D * H), states (L * D, N, H)."""
    each = 2 + bias + peepholes
    weights: dict[str, Weight] = {}
    for number in range(layers):
        W, R, *rest = given[number * each : (number + 1) * each]
        weights |= _weights(kind, number, W, R, rest[0] if bias else None)
        if peepholes:
            weights |= _peepholes(number, rest[-1])
    hidden, inputs = _sizes(kind, given[0])
    options: dict[str, Any] = {"num_layers": layers, "bias": bool(bias)}
    options |= {"batch_first": bool(batch_first), "bidirectional": directions == 2}
    if kind == "RNN":
        options["nonlinearity"] = nonlinearity
    if kind == "GRU":
        options["reset_after"] = bool(reset_after)
    if kind == "LSTM":
        options["peepholes"] = bool(peepholes)
    states = tuple(map(operand, given[layers * each :]))
    weights |= _rounding(given[0], node)
    run = layer(kind, (inputs, hidden), options, weights, x, *_together(states))
    return _emitted(kind, run, x, node.shapes[0], node)


@onnx_op("RecurrentCell", domain="burnish", traits=OWN_SHAPE)
def recurrent_cell(
    x: Expression,
    *given: Expression,
    kind: str,
    bias: int,
    order: list[int],
    transposed: list[int],
    node: NodeContext,
) -> Result:
    """One step; W (G * H, I), R (G * H, H) and biases, the G gates in this order."""
    count = 4 if bias else 2
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")[:count]
    turned = (*transposed, 0, 0)[:count]
    weights = {
        name: _rows(weight, order, bool(turn))
        for name, weight, turn in zip(names, given[:count], turned, strict=True)
    }
    sizes = (weights["weight_ih"].shape[1], weights["weight_hh"].shape[1])
    states = _together(tuple(map(operand, given[count:])))
    run = layer(f"{kind}Cell", sizes, {"bias": bool(bias)}, weights, x, *states)
    return run if kind == "GRU" else unpacked(node, run, "h", "c", dtype=x.dtype)


def _rows(weight: Expression, order: list[int], turn: bool) -> Weight:
    """A matrix or vector of a cell, its gates in PyTorch's order."""
    weight = _own(weight)
    if turn:
        weight = weight.changed(weight.shape[::-1], lambda w: w.T)
    if order == sorted(order):
        return weight

    def how(array: np.ndarray) -> np.ndarray:
        blocks = array.reshape(len(order), -1, *array.shape[1:])
        return np.ascontiguousarray(blocks[order].reshape(array.shape))

    return weight.changed(weight.shape, how)


def _layer(
    kind: str,
    x: Expression,
    W: Expression,
    R: Expression,
    B: Expression | None,
    states: tuple[Expression, ...],
    options: dict[str, Any],
    node: NodeContext,
) -> Result:
    assert isinstance(W, Weight)
    directions = W.shape[0]
    hidden, inputs = _sizes(kind, W)
    weights = _weights(kind, 0, W, R, B) | _rounding(W, node)
    options = {**options, "bias": B is not None, "bidirectional": directions == 2}
    given = _together(tuple(map(operand, states)))
    run = layer(kind, (inputs, hidden), options, weights, x, *given)
    shape = None if x.shape is None else (*x.shape[:2], hidden * directions)
    y, *ends = _emitted(kind, run, x, shape, node)
    return (_by_direction(y, directions, hidden), *ends)[: len(node.outputs)]


def _sizes(kind: str, W: Expression) -> tuple[int, int]:
    """The hidden size of one direction, and the input size."""
    assert isinstance(W, Weight)
    return W.shape[1] // len(_ORDER[kind]), W.shape[2]


def _weights(
    kind: str, number: int, W: Expression, R: Expression, B: Expression | None
) -> dict[str, Weight]:
    """The parameters of one of PyTorch's layers."""
    assert isinstance(W, Weight)
    directions, rows, inputs = W.shape
    hidden = rows // len(_ORDER[kind])
    weights: dict[str, Weight] = {}
    for d in range(directions):
        end = f"_l{number}" + "_reverse" * d
        weights[f"weight_ih{end}"] = _gates(kind, W, d, (rows, inputs))
        weights[f"weight_hh{end}"] = _gates(kind, R, d, (rows, hidden))
        if B is not None:
            weights[f"bias_ih{end}"] = _gates(kind, B, d, (rows,), slice(rows))
            weights[f"bias_hh{end}"] = _gates(kind, B, d, (rows,), slice(rows, None))
    return weights


def _peepholes(number: int, P: Expression) -> dict[str, Weight]:
    """Those of one layer, in the order of its gates i, o, f as in ONNX."""
    own = _own(P)
    return {
        f"peephole_l{number}" + "_reverse" * d: own.changed(
            own.shape[1:], partial(np.take, indices=d, axis=0)
        )
        for d in range(own.shape[0])
    }


def _rounding(W: Expression, node: NodeContext) -> dict[str, Weight]:
    """The input quantizer of a recurrent layer, if the node has one."""
    assert isinstance(W, Weight)
    return {} if node.on_input is None else on_input(node.on_input, W.path)


def _together(states: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """Initial states as the layer takes them: one, or a pair."""
    return (ListOrTuple(states, "()"),) if len(states) == 2 else states


def _emitted(
    kind: str, run: Expression, x: Expression, shape: Shape | None, node: NodeContext
) -> tuple[Expression, ...]:
    """y and the states where it ends, with a statement that makes them."""
    y = Value("y", x.dtype, shape)
    last = Value("state" if kind == "LSTM" else "h", x.dtype, None)
    node.emit(Assign((y, last), (), run))
    if kind != "LSTM":
        return y, last
    return y, *(Inline(Subscript(last, (Literal(i),))) for i in range(2))


def _gates(
    kind: str,
    weight: Expression,
    direction: int,
    shape: tuple[int, ...],
    part: slice = slice(None),
) -> Weight:
    """One direction's matrix or vector with its gates in PyTorch's order."""
    order = list(_ORDER[kind])

    def how(array: np.ndarray) -> np.ndarray:
        chosen = array[direction][part]
        blocks = chosen.reshape(len(order), -1, *chosen.shape[1:])
        return np.ascontiguousarray(blocks[order].reshape(chosen.shape))

    return _own(weight).changed(shape, how)


def _own(weight: Expression) -> Weight:
    """A weight of the layer, whose own it is where others want another layout."""
    assert isinstance(weight, Weight)
    return weight if owned(weight) else replace(weight, source=None)


def _by_direction(y: Expression, directions: int, hidden: int) -> Expression:
    """(T, N, D * H) as (T, D, N, H)"""
    if directions == 1:
        return Inline(Subscript(y, (WHOLE, Literal(None))))
    sizes = (size(y, 0), size(y, 1), Literal(directions), Literal(hidden))
    order = tuple(map(Literal, (0, 2, 1, 3)))
    return Inline(Method(Method(y, "reshape", sizes), "transpose", order))
