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
    return _steps("adagrad_step", ("x", "h"), **locals())


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
    return _steps("adam_step", ("x", "v", "h"), **locals())


@onnx_op("Momentum", domain=_DOMAIN, traits=OWN_SHAPE)
def momentum(
    R: Expression,
    T: Expression,
    *inputs: Expression,
    alpha: float,
    beta: float,
    norm_coefficient: float,
    mode: str,
    node: NodeContext,
) -> Result:
    return _steps("momentum_step", ("x", "v"), **locals())


def _steps(
    operator: str,
    results: tuple[str, ...],
    *,
    R: Expression,
    T: Expression,
    inputs: tuple[Expression, ...],
    node: NodeContext,
    **options: Any,
) -> Result:
    """One call for each tensor; inputs and outputs come kind by kind."""
    tensors = len(inputs) // (len(results) + 1)
    made = []
    for i in range(tensors):
        given = map(tensor, (*inputs[i::tensors], R, T))
        step = call(operator, *given, **options)
        made.append(unpacked(node, step, *results, dtype=inputs[i].dtype))
    return tuple(parts[k] for k in range(len(results)) for parts in made)
