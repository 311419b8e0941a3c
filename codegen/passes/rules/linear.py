"""x @ weight + bias with constant weights is a Linear layer of any rank."""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.passes.graph import constant
from burnish.codegen.passes.pattern import Any, Match, Rule, op


def _is_layer(found: Match) -> str | None:
    weight, bias = constant(found["weight"]), constant(found["bias"])
    if weight is None or len(weight.shape) != 2 or not weight.dtype.is_floating_point():
        return "the right factor is no constant matrix"
    if bias is None:
        return "the summand is no constant"
    if len(bias.shape) != 1 or bias.shape[0] != weight.shape[1]:
        return f"the summand has shape {bias.shape}, not ({weight.shape[1]},)"
    return None


def _linear(found: Match) -> ir.Node:
    return ir.Node("burnish", "Linear", [found["x"], found["weight"], found["bias"]])


RULES = (
    Rule(
        "Linear",
        op("MatMul", Any("x"), Any("weight"), name="main") + Any("bias"),
        _is_layer,
        _linear,
        ("burnish", "Linear", 1),
    ),
)
