"""Fuse norms, cosine similarity and variance along axes."""

from __future__ import annotations

import math

import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import declared, numbers
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.pattern import (
    Any,
    Match,
    Pattern,
    Rewritten,
    Rule,
    Scalar,
    either,
    op,
)
from burnish.codegen.passes.rules.norm import axes_over

_X, _Y, _EPS = Any("x"), Any("y"), Scalar("eps")


def _at_least(of: Pattern) -> Pattern:
    return either(op("Clip", of, _EPS, name="clip"), op("Max", of, _EPS))


# --- x / |x| ---

_NORM = op("ReduceL1|ReduceL2", _X, name="norm")
_ROOT = op("Sqrt", _at_least(op("ReduceSum", _X * _X, name="norm")))
_LARGEST = op("Sqrt", op("ReduceSum", _X * _X, name="norm"))
_UNIT = either(
    *(_X / _at_least(_NORM), _X / _ROOT, _X * op("Reciprocal", _ROOT)),
    _X * op("Min", op("Reciprocal", _LARGEST), _EPS, name="at most"),
)


def _not_above(found: Match) -> str | None:
    """Nothing is held below a number as well."""
    clip = found.named.get("clip")
    above = clip is not None and len(clip.inputs) > 2 and clip.inputs[2] is not None
    return "it is held below a number" if above or found.number("eps") < 0 else None


def _unit(found: Match) -> Rewritten:
    norm, eps = found.named["norm"], found.number("eps")
    axes = axes_over(norm)
    if axes is None or len(axes) != 1 or not g.attribute(norm, "keepdims", 1):
        return "the norm is not along one axis"
    if "at most" in found.named and eps <= 0:
        return "the factor is no positive number at most"
    if (reason := _not_above(found)) is not None:
        return reason
    attributes = {
        "axis": axes[0],
        "p": 1 if norm.op_type == "ReduceL1" else 2,
        "epsilon": math.sqrt(eps) if norm.op_type == "ReduceSum" else eps,
    }
    if "at most" in found.named:
        attributes["epsilon"] = 1 / eps
    return ir.node("Normalize", [found["x"]], attributes, domain="burnish")


# --- the cosine of the angle between two ---


def _product(one: Pattern, other: Pattern, name: str) -> Pattern:
    return op("ReduceSum", one * other, name=name)


_UNITS = _product(
    op("Normalize", _X, name="one", domain="burnish"),
    op("Normalize", _Y, name="two", domain="burnish"),
    "main",
)
_LENGTHS = op("Sqrt", _product(_X, _X, "one") * _product(_Y, _Y, "two"))
_COSINE = either(_UNITS, _product(_X, _Y, "main") / _at_least(_LENGTHS))


def _cosine(found: Match) -> Rewritten:
    ends = [found.named[name] for name in ("main", "one", "two")]
    units = ends[1].op_type == "Normalize"
    axes = [[n.attributes["axis"].as_int()] if n.domain else axes_over(n) for n in ends]
    if axes[0] is None or len(axes[0]) != 1 or axes.count(axes[0]) != 3:
        return "the sums are not along one axis"
    if g.attribute(ends[0], "keepdims", 1):
        return "the sum keeps its dimension"
    if units:
        one, two = [
            (g.attribute(n, "p", 2), n.attributes.get_float("epsilon", 0.0))
            for n in ends[1:]
        ]
        if one != two or one[0] != 2:
            return "norms differ"
        eps = one[1]
    elif any(g.attribute(node, "keepdims", 1) for node in ends):
        return "a length keeps its dimension"
    elif (reason := _not_above(found)) is not None:
        return reason
    else:
        eps = found.number("eps")
    attributes = {"axis": axes[0][0], "epsilon": eps}
    inputs = [found["x"], found["y"]]
    return ir.node("CosineSimilarity", inputs, attributes, domain="burnish")


# --- variance and standard deviation ---

_APART = _X - op("ReduceMean", _X, name="mean")
_SQUARE = either(_APART**2, _APART * _APART)
_VARIANCE = op("ReduceMean", _SQUARE, name="main")
_CORRECTED = op("Variance", _X, name="main", domain="burnish") * Scalar("count")


def _variance(found: Match) -> Rewritten:
    axes = axes_over(found.named["mean"])
    if not axes or axes != axes_over(found.named["main"]):
        return "the means are over other axes"
    if not g.attribute(found.named["mean"], "keepdims", 1):
        return "the mean drops its dimension"
    kept = bool(g.attribute(found.named["main"], "keepdims", 1))
    attributes: dict[str, int | list[int]] = {"axes": axes, "keepdims": kept}
    return ir.node("Variance", [found["x"]], attributes, domain="burnish")


def _corrected(found: Match) -> Rewritten:
    node = found.named["main"]
    axes, dims = node.attributes["axes"].as_ints(), declared(found["x"]) or []
    sizes = numbers([dims[axis] for axis in axes if -axis <= len(dims)])
    if g.attribute(node, "correction", 0):
        return "the divisor is another already"
    count, less = found.number("count"), found.number("less")
    if sizes is None or count != math.prod(sizes) or less <= 0:
        return "it is not multiplied by how many numbers there are"
    attributes: dict[str, float | ir.Attr] = {
        **node.attributes,
        "correction": count - less,
    }
    return ir.node("Variance", [found["x"]], attributes, domain="burnish")


def _deviation(found: Match) -> ir.Node:
    kept = found.named["main"].attributes
    return ir.node("StandardDeviation", [found["x"]], kept, domain="burnish")


_ROOT_OF_VARIANCE = op("Sqrt", op("Variance", _X, name="main", domain="burnish"))
RULES = (
    Rule("normalize", _UNIT, _unit),
    Rule("cosine similarity", _COSINE, _cosine),
    Rule("variance", _VARIANCE, _variance),
    Rule("variance of a sample", _CORRECTED / Scalar("less"), _corrected),
    Rule("standard deviation", _ROOT_OF_VARIANCE, _deviation),
)
