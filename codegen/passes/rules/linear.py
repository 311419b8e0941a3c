"""Fuse x @ weight + bias with constant weights to a Linear layer."""

from __future__ import annotations

import math

import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import declared, known, numbers
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.pattern import Any, Match, Rewritten, Rule, either, op
from burnish.codegen.symbolic.sizes import product


def _linear(found: Match) -> Rewritten:
    weight, bias = g.constant(found["weight"]), g.constant(found["bias"])
    if weight is None or len(weight.shape) != 2 or not weight.dtype.is_floating_point():
        return "the right factor is no constant matrix"
    if bias is None:
        return "the summand is no constant"
    if len(bias.shape) != 1 or bias.shape[0] != weight.shape[1]:
        return f"the summand has shape {bias.shape}, not ({weight.shape[1]},)"
    return ir.Node("burnish", "Linear", [found["x"], found["weight"], found["bias"]])


# --- a layer on a matrix of all rows, whose result gets its axes ---

_ROWS = op("Reshape", Any("x"), Any("rows"), stays=True)
_ON_ROWS = either(
    op("Gemm|Linear", _ROWS, Any("weight"), Any("bias"), name="main", domain=None),
    op("Gemm|MatMul", _ROWS, Any("weight"), name="main"),
)


def _linear_on_axes(found: Match) -> Rewritten:
    node = found.named["main"]
    weight, bias = g.constant(found["weight"]), found.values.get("bias")
    if weight is None or len(weight.shape) != 2:
        return "the right factor is no constant matrix"
    columns = weight.shape[0 if g.attribute(node, "transB", 0) else 1]
    if bias is not None and (g.constant(bias) is None or bias.shape != (columns,)):
        return "the summand is no constant vector of the columns"
    if len(node.inputs) > 2 and bias is None:
        return "the summand is another"
    plain = (g.attribute(node, name, 1) == 1 for name in ("alpha", "beta"))
    if not all(plain) or g.attribute(node, "transA", 0):
        return "the product is scaled or transposed"
    before, between = known(declared(found["x"])), declared(node.inputs[0])
    if before is None or between is None:
        return "the shapes are not known"
    if not before:
        return "what comes in is a scalar"
    if before[-1] != between[-1] or between[0] != product(before[:-1]):
        return "the rows are not vectors of the last axis"
    shape, after = g.constant(found["shape"]), declared(found.named["axes"].outputs[0])
    are_kept = after is not None and after[:-1] == before[:-1]
    if not are_kept and (shape is None or not shape.numpy().all()):
        return "the result has other axes than what came in"
    inputs = [found[name] for name in ("x", "weight", "bias") if name in found.values]
    transposed = {"transB": 1} if g.attribute(node, "transB", 0) else {}
    made = ir.node("Linear", inputs, transposed, domain="burnish")
    return [made] if are_kept else [made, _again(found.named["axes"], made)]


def _again(view: ir.Node, made: ir.Node) -> ir.Node:
    """A view of another node's result, where its author had it."""
    inputs = [made.outputs[0], *view.inputs[1:]]
    return g.named_like(ir.node("Reshape", inputs, view.attributes), view)


# --- a bias that is added to the heads of a result ---

_PRODUCT = op("MatMul|Linear", Any("x"), Any("weight"), name="main", domain=None)


def _with_bias_of_heads(found: Match) -> Rewritten:
    weight, bias = (g.constant(found[name]) for name in ("weight", "bias"))
    node = found.named
    if weight is None or len(weight.shape) != 2 or len(node["main"].inputs) > 2:
        return "it is no layer without a bias"
    before = declared(node["main"].outputs[0])
    after, columns = declared(node["heads"].outputs[0]), weight.shape.numpy()[-1]
    if g.attribute(node["main"], "transB", 0):
        columns = weight.shape.numpy()[0]
    if bias is None or before is None or after is None or None in after:
        return "the summand is no constant, or the heads are not known"
    sizes = bias.shape.numpy()
    lead = after[: -len(sizes)]
    fits = numbers(after[-len(sizes) :]) == list(sizes) and lead == before[:-1]
    if len(sizes) < 2 or not fits or math.prod(sizes) != columns:
        return "it is not added to all columns of every row"
    made = _with_bias(found)
    return [*made, _again(node["heads"], made[-1])]


def _with_bias(found: Match) -> list[ir.Node]:
    to, bias = g.reshape_nodes(found["bias"], [-1])
    bias.outputs[0].name = found["bias"].name  # a weight, not counted
    kept = list(found.named["main"].attributes.values())
    inputs = [found["x"], found["weight"], bias.outputs[0]]
    return [to, bias, ir.Node("burnish", "Linear", inputs, kept)]


# --- a bias that is written as one row: scikit-learn's intercepts ---


def _with_row(found: Match) -> Rewritten:
    weight, bias = (g.constant(found[name]) for name in ("weight", "bias"))
    node = found.named
    if weight is None or len(weight.shape) != 2 or len(node["main"].inputs) > 2:
        return "it is no layer without a bias"
    columns = weight.shape[0 if node["main"].attributes.get_int("transB", 0) else 1]
    if bias is None or len(bias.shape) < 2 or not weight.dtype.is_floating_point():
        return "the summand is no constant row"
    if bias.shape[-1] != columns or bias.size != columns:
        return "it is not added to all columns of every row"
    if len(found["bias"].uses()) > 1:  # a layer would not own its reshaped form
        return "the row is read elsewhere too"
    before = declared(node["main"].outputs[0])
    fits = before is not None and len(before) >= len(bias.shape)
    return _with_bias(found) if fits else "it may widen the product"


# --- a product whose leading axes were merged for it ---

_MERGED = op("MatMul", Any("a"), Any("b"), name="main")


def _apart(found: Match) -> Rewritten:
    one, other = parts = [_sizes(found[name]) for name in "ab"]
    result = declared(found.named["apart"].outputs[0])
    if one is None or other is None or result is None or len(result) != 4:
        return "the sizes are not known"
    lead, heads = known(result[:2]), numbers(result[1:2])
    if lead is None or heads is None:
        return "the sizes are not known"
    merged = [declared(found[name]) for name in "ab"]
    if any(dims is None or dims[0] != product(lead) for dims in merged):
        return "other axes were merged"
    if numbers(result[2:]) != [one[0], other[1]]:
        return "other axes were merged"
    made, inputs = [], []
    for name, sizes in zip("ab", parts, strict=True):
        made += g.reshape_nodes(found[name], [-1, *heads, *(sizes or ())])
        inputs.append(made[-1].outputs[0])
    return [*made, ir.Node("", "MatMul", inputs)]


def _sizes(value: ir.Value) -> list[int] | None:
    """Rows and columns of (size, rows, columns)."""
    dims, maker = declared(value), value.producer()
    views = maker is not None and maker.op_type in _VIEWS
    return numbers(dims[1:]) if dims is not None and len(dims) == 3 and views else None


_VIEWS = ("Reshape", "Transpose")
_PLAIN = op("MatMul", Any("x"), Any("weight"), name="main")
_HEADS = op("Reshape", _PRODUCT, Any("shape"), name="heads")
_APART = op("Reshape", _MERGED, Any("shape"), name="apart")
_AXES = op("Reshape", _ON_ROWS, Any("shape"), name="axes")

RULES = (
    Rule("Linear with a bias of heads", _HEADS + Any("bias"), _with_bias_of_heads),
    Rule("product of merged axes", _APART, _apart),
    Rule("Linear", _PLAIN + Any("bias"), _linear),
    Rule("Linear with a row", _PRODUCT + Any("bias"), _with_row),
    Rule("Linear on rows", _AXES, _linear_on_axes),
)
