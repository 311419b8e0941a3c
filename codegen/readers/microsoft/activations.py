"""Activations fused with a bias or a factor."""

from __future__ import annotations

from typing import Any

from burnish.codegen.readers.microsoft.shared.bodies import (
    Builder,
    Unreadable,
    microsoft,
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
