"""Fuse functions written case by case: Shrink, GLU, Softmax, rolls, floor division."""

from __future__ import annotations

from functools import partial

import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import axis_of, declared
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.pattern import (
    Any,
    Match,
    Rewritten,
    Rule,
    Scalar,
    either,
    op,
)
from burnish.codegen.passes.rules.norm import axes_over

x = Any("x")
lambd = Scalar("lambd")

# --- 0 where |x| <= lambd, else x or x brought nearer to 0 ---

_FAR = op("Greater", op("Abs", x), lambd)
_NEAR = op("LessOrEqual", op("Abs", x), lambd)
_OUTSIDE = op("Or", op("Greater", x, lambd), op("Less", x, Scalar("below")))
_NEARER = x - op("Sign", x) * lambd
_ZERO = either(Scalar("zero"), x * Scalar("zero"))
_HARD = either(
    op("Where", _FAR, x, _ZERO),
    op("Where", _NEAR, _ZERO, x),
    op("Where", _OUTSIDE, x, _ZERO),
)
_ABOVE = op("Where", op("Greater", x, lambd), x - lambd, Scalar("zero"))
_BELOW = op("Where", op("Less", x, Scalar("below")), x + lambd, Scalar("zero2"))
_SOFT = either(
    op("Where", _FAR, _NEARER, _ZERO),
    op("Where", _NEAR, _ZERO, _NEARER),
    _ABOVE + _BELOW,
)


def _shrink(found: Match, names: tuple[str, ...]) -> Rewritten:
    near, below = found.number("lambd"), g.scalar(found.values.get("below"))
    zeros = [g.scalar(found.values.get(name)) for name in ("zero", "zero2")]
    if near < 0 or any(zeros):
        return "it is not 0 around 0"
    if below is not None and below != -near:
        return "one side begins elsewhere"
    return ir.node("Shrink", [found["x"]], dict.fromkeys(names, near))


# --- one half times the sigmoid of the other ---


def _glu(found: Match) -> Rewritten:
    split, sigmoid = found["half"].producer(), found["gate"].producer()
    if split is None or split is not sigmoid or split.op_type != "Split":
        return "the factors are no halves of one value"
    if split.domain or len(split.outputs) != 2 or split.outputs[0] is not found["half"]:
        return "the first half is not the one that is kept"
    if any(len(half.uses()) != 1 or half.is_graph_output() for half in split.outputs):
        return "a half is used elsewhere too"
    sizes = [(declared(half) or [None])[axis_of(split)] for half in split.outputs]
    if sizes[0] is None or sizes[0] != sizes[1]:
        return "the parts differ in size"
    whole, axis = split.inputs[0], axis_of(split)
    rank = len(declared(whole) or [])
    last = -1 if rank and axis == rank - 1 else axis
    return ir.node("GLU", [whole], {"axis": last}, domain="burnish")


# --- exp(x) / sum of exp(x) ---

_POWERS = op("Exp", either(x - op("ReduceMax", x, name="most"), x))
_SOFTMAX = _POWERS / op("ReduceSum", _POWERS, name="sum")


def _softmax(found: Match) -> Rewritten:
    reductions = [found.named[name] for name in ("sum", "most") if name in found.named]
    axes = [axes_over(node) for node in reductions]
    if axes[0] is None or len(axes[0]) != 1 or axes.count(axes[0]) != len(axes):
        return "the sum is not along one axis"
    if not all(g.attribute(node, "keepdims", 1) for node in reductions):
        return "the sum drops its dimension"
    return ir.node("Softmax", [found["x"]], {"axis": axes[0][0]})


def _log_softmax(found: Match) -> ir.Node:
    axis = axis_of(found.named["main"], -1)
    return ir.node("LogSoftmax", [found["x"]], {"axis": axis})


# --- the end of an axis before its beginning ---


_ROLLED = op(
    "Concat",
    op("Slice", x, Any("cut"), Any("end"), Any("axis"), name="tail"),
    op("Slice", x, Any("start"), Any("cut2"), Any("axis2"), name="head"),
    name="main",
)


def _rolled(found: Match) -> Rewritten:
    dims, node = declared(found["x"]) or [], found.named["main"]
    rank, parts = len(dims), (found.named["tail"], found.named["head"])
    names = ("cut", "cut2", "start", "end", "axis", "axis2")
    given = [g.integers(found[name]) for name in names]
    known = all(n is not None and len(n) == 1 for n in given)
    if len(node.inputs) != 2 or not rank or not known:
        return "the parts are not known"
    cut, cut2, start, end, axis, axis2 = (n[0] for n in given if n)
    if any(g.integers(n) != [1] for part in parts for n in part.inputs[4:]):
        return "elements are left out"
    if len({axis % rank, axis2 % rank, axis_of(node) % rank}) > 1:
        return "the parts are cut and joined along different axes"
    size = dims[axis]
    whole = None if size is None else size.value
    last = 1 << 30 if whole is None else whole
    if cut != cut2 or start != 0 or end < last:
        return "the parts are not all there is"
    shift = whole - cut if whole is not None and 2 * cut > whole else -cut
    axis = -1 if axis == rank - 1 else axis
    attributes = {"shifts": [shift], "axes": [axis]}
    return ir.node("Roll", [found["x"]], attributes, domain="burnish")


_TWICE = op(
    "Roll",
    op("Roll", x, name="first", domain="burnish"),
    name="second",
    domain="burnish",
)


def _rolled_twice(found: Match) -> ir.Node:
    first, second = found.named["first"], found.named["second"]
    attributes = {
        name: [*first.attributes[name].as_ints(), *second.attributes[name].as_ints()]
        for name in ("shifts", "axes")
    }
    return ir.node("Roll", [found["x"]], attributes, domain="burnish")


# --- torch's floor division of integers: a quotient, less one where signs differ ---
# ONNX divides integers towards zero. The quotient is corrected where there is a
# remainder and one of the two is negative; an exporter may know the divisor's sign.

_A, _B = Any("a"), Any("b")
_BELOW = op("Less", _A, 0.0)
_SIGNS_DIFFER = either(
    op("Xor", _BELOW, op("Less", _B, 0.0)),
    op("Xor", _BELOW, Any("negative")),
    _BELOW,
)
_REMAINS = op("Not", op("Equal", op("Mod", _A, _B), 0.0))
_QUOTIENT = op("Div", _A, _B)


_FLOOR = op("Where", op("And", _SIGNS_DIFFER, _REMAINS), _QUOTIENT - 1, _QUOTIENT)


def _floor(found: Match) -> Rewritten:
    a, b = found["a"], found["b"]
    divisor = g.constant(b)
    if a.dtype is None or not a.dtype.is_integer():
        return "it is no division of integers"
    compared = [node.inputs[0] for node in found.nodes if node.op_type == "Less"]
    if b not in compared:
        if divisor is None or (divisor.numpy() < 0).any():
            return "the divisor may be negative"
        negative = found.values.get("negative")
        said = None if negative is None else g.constant(negative)
        if negative is not None and (said is None or said.numpy().any()):
            return "the signs are compared otherwise"
    return ir.Node("burnish", "FloorDiv", [a, b])


RULES = (
    Rule("Shrink (hard)", _HARD, partial(_shrink, names=("lambd",))),
    Rule("Shrink (soft)", _SOFT, partial(_shrink, names=("lambd", "bias"))),
    Rule("GLU", Any("half") * op("Sigmoid", Any("gate")), _glu),
    Rule("Softmax", _SOFTMAX, _softmax),
    Rule("LogSoftmax", op("Log", op("Softmax", x, name="main")), _log_softmax),
    Rule("roll", _ROLLED, _rolled),
    Rule("roll of several axes", _TWICE, _rolled_twice),
    Rule("floor division", _FLOOR, _floor),
)
