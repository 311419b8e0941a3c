"""One step of each recurrent network, and the loop over time that they share.

Legend: T time, N batch, I inputs, H hidden. Gates are concatenated in one matrix,
in an order that a string says: "iofc" in ONNX's LSTM, "ifco" in PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from burnish import steps
from burnish.backend import namespace
from burnish.ops._kernels.gru import gru_sequence
from burnish.ops._kernels.lstm import lstm_sequence
from burnish.ops._kernels.rnn import rnn_sequence
from burnish.ops._kernels.states import alive
from burnish.ops.activation.piecewise import (
    hard_sigmoid,
    leaky_relu,
    relu,
    thresholded_relu,
)
from burnish.ops.activation.smooth import elu, sigmoid, softplus, softsign
from burnish.ops.arrays.shape import split, stack
from burnish.ops.elementwise.clip import clip
from burnish.ops.elementwise.compare import where
from burnish.ops.elementwise.elementary import tanh
from burnish.ops.linalg.linear import linear

Activation = Callable[[Any], Any]
State = tuple[Any, ...]
Step = Callable[[Any, State], State]


def scan(
    step: Step, x: Any, state: State, *, reverse: bool = False, lengths: Any = None
) -> tuple[Any, State]:
    """Every step's first state (T, N, H), and the last states.

    x: (T, N, gates * H), what the inputs contribute to the gates. lengths: (N,), where
    each example ends: its states stay from there on, and its results are 0.
    """
    count, n, width = x.shape
    if not count:
        # a sum of no rows is zeros, a Tensor where x is one
        none = x[..., :1].sum(axis=0)
        return x[..., : state[0].shape[-1]], tuple(s + none for s in state)
    live = None if lengths is None else _live(lengths, count=count)
    if isinstance(step, Whole):
        states = step.sequence(x, state, live, reverse)
        return alive(live, states[0]), tuple(s[0 if reverse else -1] for s in states)
    inputs = [part.reshape(n, width) for part in split(x, num=count, axis=0)]
    results: list[Any] = [None] * count
    for t in reversed(range(count)) if reverse else range(count):
        after = step(inputs[t], state)
        if live is None:
            results[t] = after[0]
        else:
            results[t] = where(live[t], after[0], 0)
            pairs = zip(after, state, strict=True)
            after = tuple(where(live[t], a, b) for a, b in pairs)
        state = after
    return stack(results, axis=0), state


@steps.step
def _live(lengths: Any, *, count: int) -> Any:
    """Whether a step is before an example's end: (T, N, 1)"""
    xp = namespace(lengths)
    return (xp.arange(count)[:, None] < lengths)[..., None]


class Whole:
    """A step that there is an operator over whole sequences for.

    sequence: (x, state, live, reverse) -> every step's states, each (T, N, H).
    """

    def __init__(self, step: Step, sequence: Callable[[Any, State, Any, bool], State]):
        self.step, self.sequence = step, sequence

    def __call__(self, x: Any, state: State) -> State:
        return self.step(x, state)


def lstm_step(
    weight: Any,
    order: str,
    activations: Sequence[Activation],
    *,
    peephole: Any = None,
    input_forget: bool = False,
    projection: Any = None,
    product: Activation | None = None,
) -> Step:
    """(h, c) -> (h, c); weight (4 * H, H); peephole (3 * H,), for the gates i, o, f

    projection: (P, H), from the step's result to the next step's h. product: h to its
    product with weight, where that is not the plain one.
    """
    gate, cell, output = activations
    peeps = split(peephole, num=3, axis=0) if peephole is not None else None

    def step(x: Any, state: State) -> State:
        h, c = state
        own = linear(h, weight) if product is None else product(h)
        parts = split(x + own, num=4, axis=-1)
        z = dict(zip(order, parts, strict=True))
        if peeps:
            z["i"] = z["i"] + peeps[0] * c
            z["f"] = z["f"] + peeps[2] * c
        taken = gate(z["i"])
        kept = 1 - taken if input_forget else gate(z["f"])
        c = kept * c + taken * cell(z["c"])
        if peeps:
            z["o"] = z["o"] + peeps[1] * c
        h = gate(z["o"]) * output(c)
        return (h if projection is None else linear(h, projection)), c

    given = (peephole, projection, product)
    extras = input_forget or any(part is not None for part in given)
    if not extras and tuple(activations) == (sigmoid, tanh, tanh):

        def sequence(x: Any, state: State, live: Any, reverse: bool) -> State:
            h, c = state
            steps = lstm_sequence(x, weight, h, c, live, order=order, reverse=reverse)
            return steps[:2]

        return Whole(step, sequence)
    return step


def gru_step(
    weight: Any,
    bias: Any,
    order: str,
    activations: Sequence[Activation],
    *,
    linear_before_reset: bool,
) -> Step:
    """(h,) -> (h,); weight (3 * H, H) and bias (3 * H,) for the gates z, r, h

    linear_before_reset: the reset gate acts behind the candidate's matrix product.
    """
    gate, candidate = activations
    weights = dict(zip(order, split(weight, num=3, axis=0), strict=True))
    biases: dict[str, Any] = dict.fromkeys(order)
    if bias is not None:
        biases = dict(zip(order, split(bias, num=3, axis=0), strict=True))

    def step(x: Any, state: State) -> State:
        (h,) = state
        z = dict(zip(order, split(x, num=3, axis=-1), strict=True))
        if linear_before_reset:
            parts = split(linear(h, weight, bias), num=3, axis=-1)
            own = dict(zip(order, parts, strict=True))
            reset = gate(z["r"] + own["r"])
            update = gate(z["z"] + own["z"])
            new = candidate(z["h"] + reset * own["h"])
        else:
            reset = gate(z["r"] + linear(h, weights["r"], biases["r"]))
            update = gate(z["z"] + linear(h, weights["z"], biases["z"]))
            new = candidate(z["h"] + linear(reset * h, weights["h"], biases["h"]))
        return (new + update * (h - new),)

    def sequence(x: Any, state: State, live: Any, reverse: bool) -> State:
        (h,) = state
        steps = gru_sequence(
            x,
            weight,
            h,
            bias,
            live,
            order=order,
            reset_after=linear_before_reset,
            reverse=reverse,
        )
        return steps[:1]

    if (gate, candidate) == (sigmoid, tanh):
        return Whole(step, sequence)
    return step


def rnn_step(weight: Any, activation: Activation) -> Step:
    """(h,) -> (h,); weight (H, H)"""

    def step(x: Any, state: State) -> State:
        return (activation(x + linear(state[0], weight)),)

    def sequence(x: Any, state: State, live: Any, reverse: bool) -> State:
        bend = "tanh" if activation is tanh else "relu"
        (h,) = state
        return (rnn_sequence(x, weight, h, live, bend=bend, reverse=reverse),)

    return Whole(step, sequence) if activation in (tanh, relu) else step


_TABLE: dict[str, Callable[[Any, float | None, float | None], Any]] = {
    "affine": lambda x, a, b: x * _or(a, 1.0) + _or(b, 0.0),
    "elu": lambda x, a, b: elu(x, alpha=_or(a, 1.0)),
    "hardsigmoid": lambda x, a, b: hard_sigmoid(x, alpha=_or(a, 0.2), beta=_or(b, 0.5)),
    "leakyrelu": lambda x, a, b: leaky_relu(x, negative_slope=_or(a, 0.01)),
    "scaledtanh": lambda x, a, b: tanh(x * _or(b, 1.0)) * _or(a, 1.0),
    "softplus": lambda x, a, b: softplus(x),
    "softsign": lambda x, a, b: softsign(x),
    "thresholdedrelu": lambda x, a, b: thresholded_relu(x, alpha=_or(a, 1.0)),
}
_PLAIN: dict[str, Activation] = {"relu": relu, "sigmoid": sigmoid, "tanh": tanh}
ACTIVATIONS = frozenset([*_TABLE, *_PLAIN])
SCALED = {"affine": 2, "scaledtanh": 2, "hardsigmoid": 2, "elu": 1, "leakyrelu": 1}
SCALED["thresholdedrelu"] = 1


def activation(
    name: str,
    alpha: float | None = None,
    beta: float | None = None,
    bound: float | None = None,
) -> Activation:
    """An activation by ONNX's name; what goes in is held between -bound and bound."""
    chosen = _PLAIN.get(name.lower()) or _scaled(name.lower(), alpha, beta)
    if bound is None:
        return chosen
    return lambda x: chosen(clip(x, -bound, bound))


def _scaled(name: str, alpha: float | None, beta: float | None) -> Activation:
    chosen = _TABLE[name]
    return lambda x: chosen(x, alpha, beta)


def _or(value: float | None, default: float) -> float:
    return default if value is None else value
