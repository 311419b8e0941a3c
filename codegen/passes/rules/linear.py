"""x @ weight + bias with constant weights is a Linear layer of any rank."""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.passes.graph import attribute, constant
from burnish.codegen.passes.pattern import Any, Match, Rule, either, op
from burnish.codegen.passes.shape_words import declared
from burnish.codegen.sizes import product

_TARGET = ("burnish", "Linear", 1)


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


# --- a layer on a matrix of all rows, whose result gets the axes back ---

_ROWS = op("Reshape", Any("x"), Any("rows"))
_ON_ROWS = either(
    op("Gemm", _ROWS, Any("weight"), Any("bias"), name="main"),
    op("Gemm", _ROWS, Any("weight"), name="main"),
    op("MatMul", _ROWS, Any("weight"), name="main"),
    op("Linear", _ROWS, Any("weight"), Any("bias"), name="main", domain="burnish"),
)


def _keeps_axes(found: Match) -> str | None:
    node = found.named["main"]
    weight, bias = constant(found["weight"]), found.values.get("bias")
    if weight is None or len(weight.shape) != 2:
        return "the right factor is no constant matrix"
    if bias is not None and (constant(bias) is None or len(bias.shape or ()) != 1):
        return "the summand is no constant vector"
    if len(node.inputs) > 2 and bias is None:
        return "the summand is another"
    plain = (attribute(node, name, 1) == 1 for name in ("alpha", "beta"))
    if not all(plain) or attribute(node, "transA", 0):
        return "the product is scaled or turned"
    before, between = declared(found["x"]), declared(node.inputs[0])
    after = declared(found.named["axes"].outputs[0])
    if before is None or between is None or after is None or None in before:
        return "the shapes are not known"
    lead = [size for size in before[:-1] if size is not None]
    if before[-1] != between[-1] or between[0] != product(lead):
        return "the rows are not vectors of the last axis"
    columns = weight.shape[0 if attribute(node, "transB", 0) else 1]
    if after[:-1] != before[:-1] or after[-1] is None or after[-1].value != columns:
        return "the result has other axes than what came in"
    return None


def _linear_on_axes(found: Match) -> ir.Node:
    inputs = [found[name] for name in ("x", "weight", "bias") if name in found.values]
    turned = attribute(found.named["main"], "transB", 0)
    attributes = [ir.AttrInt64("transB", 1)] if turned else []
    return ir.Node("burnish", "Linear", inputs, attributes)


RULES = (
    Rule(
        "Linear",
        op("MatMul", Any("x"), Any("weight"), name="main") + Any("bias"),
        _is_layer,
        _linear,
        _TARGET,
    ),
    Rule(
        "Linear on rows",
        op("Reshape", _ON_ROWS, Any("shape"), name="axes"),
        _keeps_axes,
        _linear_on_axes,
        _TARGET,
    ),
)
