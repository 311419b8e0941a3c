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
    Rule,
    Scalar,
    accept,
    either,
    op,
)
from burnish.codegen.passes.rules.norm import axes_over

_X, _Y, _EPS = Any("x"), Any("y"), Scalar("eps")


def _at_least(of: Pattern) -> Pattern:
    return either(op("Clip", of, _EPS, name="clip"), op("Max", of, _EPS))


# --- x / |x| ---

_NORM = either(op("ReduceL2", _X, name="norm"), op("ReduceL1", _X, name="norm"))
_ROOT = op("Sqrt", _at_least(op("ReduceSum", op("Mul", _X, _X), name="norm")))
_LARGEST = op("Sqrt", op("ReduceSum", op("Mul", _X, _X), name="norm"))
_UNIT = either(
    *(_X / _at_least(_NORM), _X / _ROOT, _X * op("Reciprocal", _ROOT)),
    _X * op("Min", op("Reciprocal", _LARGEST), _EPS, name="at most"),
)


def _check_unit(found: Match) -> str | None:
    axes = axes_over(found.named["norm"])
    kept = g.attribute(found.named["norm"], "keepdims", 1)
    if axes is None or len(axes) != 1 or not kept:
        return "the norm is not along one axis"
    if "at most" in found.named and found.number("eps") <= 0:
        return "the factor is no positive number at most"
    return _not_above(found)


def _not_above(found: Match) -> str | None:
    """Nothing is held below a number as well."""
    clip = found.named.get("clip")
    above = clip is not None and len(clip.inputs) > 2 and clip.inputs[2] is not None
    return "it is held below a number" if above or found.number("eps") < 0 else None


def _unit(found: Match) -> ir.Node:
    norm = found.named["norm"]
    axes, eps = g.unwrap(axes_over(norm)), found.number("eps")
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
    return op("ReduceSum", op("Mul", one, other), name=name)


_UNITS = _product(
    op("Normalize", _X, name="one", domain="burnish"),
    op("Normalize", _Y, name="two", domain="burnish"),
    "main",
)
_LENGTHS = op("Sqrt", _product(_X, _X, "one") * _product(_Y, _Y, "two"))
_COSINE = either(_UNITS, _product(_X, _Y, "main") / _at_least(_LENGTHS))


def _check_cosine(found: Match) -> str | None:
    ends = [found.named[name] for name in ("main", "one", "two")]
    units = ends[1].op_type == "Normalize"
    axes = [[n.attributes["axis"].as_int()] if n.domain else axes_over(n) for n in ends]
    if axes[0] is None or len(axes[0]) != 1 or axes.count(axes[0]) != 3:
        return "the sums are not along one axis"
    if g.attribute(ends[0], "keepdims", 1):
        return "the sum keeps its dimension"
    if units:
        known = [
            (g.attribute(n, "p", 2), g.attribute(n, "epsilon", 0)) for n in ends[1:]
        ]
        return None if known[0] == known[1] and known[0][0] == 2 else "norms differ"
    if any(g.attribute(node, "keepdims", 1) for node in ends):
        return "a length keeps its dimension"
    return _not_above(found)


def _cosine(found: Match) -> ir.Node:
    axes = g.unwrap(axes_over(found.named["main"]))
    held = found.named["one"].attributes.get_float("epsilon")
    eps = found.number("eps") if held is None else held
    attributes = {"axis": axes[0], "epsilon": eps}
    inputs = [found["x"], found["y"]]
    return ir.node("CosineSimilarity", inputs, attributes, domain="burnish")


# --- variance and standard deviation ---

_APART = _X - op("ReduceMean", _X, name="mean")
_SQUARE = either(op("Pow", _APART, 2), op("Mul", _APART, _APART))
_VARIANCE = op("ReduceMean", _SQUARE, name="main")
_CORRECTED = op("Variance", _X, name="main", domain="burnish") * Scalar("count")


def _check_variance(found: Match) -> str | None:
    axes = axes_over(found.named["mean"])
    if not axes or axes != axes_over(found.named["main"]):
        return "the means are over other axes"
    kept = g.attribute(found.named["mean"], "keepdims", 1)
    return None if kept else "the mean drops its dimension"


def _variance(found: Match) -> ir.Node:
    axes = g.unwrap(axes_over(found.named["main"]))
    kept = bool(g.attribute(found.named["main"], "keepdims", 1))
    attributes: dict[str, int | list[int]] = {"axes": axes, "keepdims": kept}
    return ir.node("Variance", [found["x"]], attributes, domain="burnish")


def _check_count(found: Match) -> str | None:
    node = found.named["main"]
    axes, dims = node.attributes["axes"].as_ints(), declared(found["x"]) or []
    sizes = numbers([dims[axis] for axis in axes if -axis <= len(dims)])
    if g.attribute(node, "correction", 0):
        return "the divisor is another already"
    counted = sizes is not None and found.number("count") == math.prod(sizes)
    if not counted or found.number("less") <= 0:
        return "it is not multiplied by how many numbers there are"
    return None


def _corrected(found: Match) -> ir.Node:
    correction = found.number("count") - found.number("less")
    attributes: dict[str, float | ir.Attr] = {
        **found.named["main"].attributes,
        "correction": correction,
    }
    return ir.node("Variance", [found["x"]], attributes, domain="burnish")


def _deviation(found: Match) -> ir.Node:
    kept = found.named["main"].attributes
    return ir.node("StandardDeviation", [found["x"]], kept, domain="burnish")


RULES = (
    Rule("normalize", _UNIT, _check_unit, _unit),
    Rule("cosine similarity", _COSINE, _check_cosine, _cosine),
    Rule("variance", _VARIANCE, _check_variance, _variance),
    Rule("variance of a sample", _CORRECTED / Scalar("less"), _check_count, _corrected),
    Rule(
        "standard deviation",
        op("Sqrt", op("Variance", _X, name="main", domain="burnish")),
        accept,
        _deviation,
    ),
)
