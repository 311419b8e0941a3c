"""Activations, softmax and dropout, fused with a bias, a factor or a residual."""

from __future__ import annotations

from typing import Any

from burnish.codegen.readers.microsoft.shared.bodies import (
    Builder,
    Unreadable,
    microsoft,
    rank,
)


@microsoft("Gelu")
def gelu(op: Builder, X: Any) -> Any:
    return op.Gelu(X)


@microsoft("BiasGelu")
def bias_gelu(op: Builder, A: Any, B: Any) -> Any:
    return op.Gelu(op.Add(A, B))


@microsoft("FastGelu")
def fast_gelu(op: Builder, X: Any, bias: Any = None) -> Any:
    return op.Gelu(X if bias is None else op.Add(X, bias), approximate="tanh")


@microsoft("QuickGelu")
def quick_gelu(op: Builder, X: Any, *, alpha: float = 1.702) -> Any:
    if alpha == 1:
        return op.Mul(X, op.Sigmoid(X))
    return op.Mul(X, op.Sigmoid(op.Mul(op.number(alpha, X), X)))


@microsoft("GemmFastGelu")
def gemm_fast_gelu(op: Builder, X: Any, W: Any, bias: Any = None) -> Any:
    return fast_gelu(op, op.MatMul(X, W), bias)


@microsoft("SwiGLU")
def swiglu(
    op: Builder,
    gate: Any,
    up: Any = None,
    *,
    activation_alpha: float = 1.0,
    activation_beta: float = 0.0,
    limit: float = 0.0,
    round_activation: int = 0,
) -> Any:
    """gate * sigmoid(alpha * gate) * (up + beta); without up, gate holds both halves"""
    if up is None:
        gate, up = op.make("", "Split", (gate,), {"axis": -1, "num_outputs": 2}, 2)
    if limit > 0:
        low, high = op.number(-limit, gate), op.number(limit, gate)
        gate, up = op.Clip(gate, None, high), op.Clip(up, low, high)
    gate = quick_gelu(op, gate, alpha=activation_alpha)
    if activation_beta:
        up = op.Add(up, op.number(activation_beta, up))
    return op.Mul(gate, up)


@microsoft("BiasSoftmax")
def bias_softmax(
    op: Builder, data: Any, bias: Any, *, axis: int = 1, is_inner_broadcast: int
) -> Any:
    """Softmax over all axes from `axis` on; the bias broadcasts as it is."""
    total, last = op.Add(data, bias), rank(data) - 1
    if axis % (last + 1) == last:
        return op.Softmax(total, axis=-1)
    whole = op.Softmax(op.Flatten(total, axis=axis), axis=-1)
    return op.Reshape(whole, op.Shape(total))


@microsoft("BiasDropout")
@microsoft("BitmaskBiasDropout")
def bias_dropout(
    op: Builder,
    data: Any,
    bias: Any,
    residual: Any = None,
    ratio: Any = None,
    training_mode: Any = None,
    *,
    seed: int | None = None,
) -> Any:
    y = op.Dropout(op.Add(data, bias), ratio, training_mode, seed=seed)
    return y if residual is None else op.Add(y, residual)


@microsoft("BitmaskDropout")
def bitmask_dropout(
    op: Builder,
    data: Any,
    ratio: Any = None,
    training_mode: Any = None,
    *,
    seed: int | None = None,
) -> Any:
    return op.Dropout(data, ratio, training_mode, seed=seed)


_PARAMETERS = {"LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta")}


def activated(op: Builder, x: Any, kind: str, parameters: Any = ()) -> Any:
    """x behind the activation that an operator was fused with; "" is none."""
    if not kind:
        return x
    if kind in ("HardSwish", "Relu", "Sigmoid", "Tanh"):
        return getattr(op, kind)(x)
    parameters = [float(number) for number in parameters]
    if kind == "Clip":
        low, high = parameters
        return op.Clip(x, op.number(low, x), op.number(high, x))
    if kind not in _PARAMETERS:
        raise Unreadable(f"expected an activation of known meaning, got {kind}")
    given = dict(zip(_PARAMETERS[kind], parameters, strict=False))
    return getattr(op, kind)(x, **given)
