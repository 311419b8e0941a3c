"""Optimizer steps inside a graph."""

from __future__ import annotations

from typing import Any

from burnish.codegen.ops.rule.expressions import call, tensor
from burnish.codegen.ops.rule.registry import NodeContext, Result, onnx_op
from burnish.codegen.ops.rule.traits import OWN_SHAPE
from burnish.codegen.ops.rule.words import unpacked
from burnish.codegen.program import Expression

_DOMAIN = "ai.onnx.preview.training"


@onnx_op("Adagrad", domain=_DOMAIN, traits=OWN_SHAPE)
def adagrad(
    R: Expression,
    T: Expression,
    *inputs: Expression,
    decay_factor: float = 0.0,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
    node: NodeContext,
) -> Result:
    options = {
        "decay_factor": decay_factor,
        "epsilon": epsilon,
        "norm_coefficient": norm_coefficient,
    }
    return _steps(node, "adagrad_step", (R, T), inputs, ("x", "h"), options)


@onnx_op("Adam", domain=_DOMAIN, traits=OWN_SHAPE)
def adam(
    R: Expression,
    T: Expression,
    *inputs: Expression,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
    node: NodeContext,
) -> Result:
    options = {
        "alpha": alpha,
        "beta": beta,
        "epsilon": epsilon,
        "norm_coefficient": norm_coefficient,
        "norm_coefficient_post": norm_coefficient_post,
    }
    return _steps(node, "adam_step", (R, T), inputs, ("x", "v", "h"), options)


@onnx_op("Momentum", domain=_DOMAIN, traits=OWN_SHAPE)
def momentum(
    R: Expression,
    T: Expression,
    *inputs: Expression,
    alpha: float,
    beta: float,
    mode: str,
    norm_coefficient: float,
    node: NodeContext,
) -> Result:
    options = {
        "alpha": alpha,
        "beta": beta,
        "norm_coefficient": norm_coefficient,
        "mode": mode,
    }
    return _steps(node, "momentum_step", (R, T), inputs, ("x", "v"), options)


def _steps(
    node: NodeContext,
    operator: str,
    rate_and_count: tuple[Expression, Expression],
    inputs: tuple[Expression, ...],
    results: tuple[str, ...],
    options: dict[str, Any],
) -> Result:
    """One call for each tensor; inputs and outputs come kind by kind."""
    tensors = len(inputs) // (len(results) + 1)
    rest = tuple(map(tensor, rate_and_count))
    made = [
        unpacked(
            node,
            call(operator, *map(tensor, inputs[i::tensors]), *rest, **options),
            *results,
            dtype=inputs[i].dtype,
        )
        for i in range(tensors)
    ]
    return tuple(parts[k] for k in range(len(results)) for parts in made)
