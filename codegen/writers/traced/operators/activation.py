"""Activations, softmax and dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.codegen.writers.traced.emitter import Emitter
from burnish.codegen.writers.traced.table import same_as, writers, writes

_SAME = {
    "relu": "Relu", "sigmoid": "Sigmoid", "softplus": "Softplus",
    "softsign": "Softsign", "hard_swish": "HardSwish", "mish": "Mish", "elu": "Elu",
    "celu": "Celu", "hard_sigmoid": "HardSigmoid", "hardmax": "Hardmax",
    "thresholded_relu": "ThresholdedRelu", "selu": "Selu", "shrink": "Shrink",
    "prelu_of": "PRelu",
}  # fmt: skip
writers.update((name, same_as(op)) for name, op in _SAME.items())
writers["leaky_relu"] = same_as("LeakyRelu", negative_slope="alpha")


@writes("gelu")
def gelu(emit: Emitter, x: Any, *, approximate: str) -> Any:
    return emit("Gelu", x, approximate=None if approximate == "none" else approximate)


@writes("relu6")
def relu6(emit: Emitter, x: Any) -> Any:
    return hard_tanh(emit, x, low=0.0, high=6.0)


@writes("hard_tanh")
def hard_tanh(emit: Emitter, x: Any, *, low: float, high: float) -> Any:
    return emit("Clip", x, np.asarray(low, x.dtype), np.asarray(high, x.dtype))


@writes("threshold")
def threshold(emit: Emitter, x: Any, *, threshold: float, value: float) -> Any:
    above = emit("Greater", x, np.asarray(threshold, x.dtype))
    return emit("Where", above, x, np.asarray(value, x.dtype))


@writes("swish", "silu")
def swish(emit: Emitter, x: Any, *, alpha: float = 1.0) -> Any:
    scaled = x if alpha == 1 else emit("Mul", x, np.asarray(alpha, x.dtype))
    return emit("Mul", x, emit("Sigmoid", scaled))


@writes("log_sigmoid")
def log_sigmoid(emit: Emitter, x: Any) -> Any:
    return emit("Neg", emit("Softplus", emit("Neg", x)))


@writes("glu")
def glu(emit: Emitter, x: Any, axis: int = -1) -> Any:
    a, b = emit("Split", x, outputs=2, axis=axis, num_outputs=2)
    return sigmoid_gate(emit, a, b)


@writes("sigmoid_gate")
def sigmoid_gate(emit: Emitter, a: Any, b: Any) -> Any:
    return emit("Mul", a, emit("Sigmoid", b))


@writes("softmax_or_zero")
def softmax_or_zero(emit: Emitter, x: Any) -> Any:
    """Rows where every score is -inf are NaN to Softmax, here 0."""
    shares = emit("Softmax", x, axis=-1)
    return emit("Where", emit("IsNaN", shares), np.asarray(0, x.dtype), shares)


@writes("nn.Dropout")
def dropout(emit: Emitter, x: Any) -> Any:
    """The layer's ratio; it acts in training alone."""
    return emit("Dropout", x, np.asarray(emit.current.function.p, np.float32))


@writes("quiet_softmax")
def quiet_softmax(emit: Emitter, x: Any, axis: int = -1) -> Any:
    """exp(x) / (1 + sum(exp(x)))"""
    kind = x.dtype
    zero = np.asarray(0, kind)
    top = emit("ReduceMax", x, emit.ints([axis]), keepdims=1)
    top = emit("Max", top, zero)
    powers = emit("Exp", emit("Sub", x, top))
    total = emit("ReduceSum", powers, emit.ints([axis]), keepdims=1)
    return emit("Div", powers, emit("Add", total, emit("Exp", emit("Neg", top))))


@writes("softmin")
def softmin(emit: Emitter, x: Any, axis: int = -1) -> Any:
    return emit("Softmax", emit("Neg", x), axis=axis)


@writes(softmax="Softmax", log_softmax="LogSoftmax")
def over_an_axis(emit: Emitter, x: Any, axis: int = -1, *, op: str) -> Any:
    if emit.rank:
        return emit(op, x, axis=axis)
    row = emit("Unsqueeze", x, emit.ints([0]))  # they take no scalar
    return emit("Squeeze", emit(op, row, axis=0), emit.ints([0]))
