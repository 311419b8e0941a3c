"""Replace a splat constant (one value everywhere) by the scalar, or by padding."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import declared
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.pattern import (
    Any,
    Match,
    Rewritten,
    Rule,
    Table,
    either,
    op,
)
from burnish.codegen.passes.rules.attention.masks import filled
from burnish.codegen.weights.constants import trains

_KINDS = "Add|Max|Min|Mul"


def _with_number(found: Match) -> Rewritten:
    full, x = found.named["full"].outputs[0], found["x"]
    number = filled(full)
    if number is None or x.dtype is None or full.dtype not in (None, x.dtype):
        return "it is not full of one number"
    if not g.proven_equal(x, full):
        return "it may widen the other side"
    exact = np.array(number, x.dtype.numpy())
    if float(exact) != number:
        return "the number is not known exactly"
    made = g.constant_node(exact)
    return [made, ir.Node("", found.named["main"].op_type, [x, made.outputs[0]])]


def _with_constant(found: Match) -> Rewritten:
    full, x = found["full"], found["x"]
    tensor = g.constant(full)
    if tensor is None or full.dtype != x.dtype or filled(full) is None:
        return "it is not full of one number"
    if not g.proven_equal(x, full):
        return "it may widen the other side"
    made = g.constant_node(tensor.numpy().reshape(-1)[:1].reshape(()))
    return [made, ir.Node("", found.named["main"].op_type, [x, made.outputs[0]])]


# --- the same row for each ---


def _with_row(found: Match) -> Rewritten:
    places, gather = found["places"], found.named["gather"]
    number, table = filled(places), g.constant(found["table"])
    if number is None or number < 0 or table is None or len(table.shape) != 2:
        return "it is no row of a table for each"
    if g.attribute(gather, "axis", 0):
        return "it is a column"
    if not g.proven_equal(found["x"], gather.outputs[0]):
        return "it may widen the other side"
    if not declared(places):
        return "it is one row"
    made = g.constant_node(np.array(int(number), np.int64))
    row = ir.Node("", "Gather", [found["table"], made.outputs[0]])
    g.named_like(row, gather)
    return [made, row, ir.Node("", "Add", [found["x"], row.outputs[0]])]


# --- zeros that are stored to be joined: for devices that cannot pad channels ---


def _padded(found: Match) -> Rewritten:
    main, zeros, x = (
        found.named["main"],
        g.constant(found["zeros"]),
        declared(found["x"]),
    )
    if zeros is None or trains(found["zeros"]) or g.constant(found["x"]) is not None:
        return "nothing beside it is constant"
    if not zeros.dtype.is_floating_point() or len(zeros.shape) < 2 or x is None:
        return "it is no part of a tensor with several axes"
    sizes = list(zeros.shape.numpy())
    axis = main.attributes.get_int("axis", 0) % len(sizes)
    if axis == 0:
        return "it is an example of its own beside others"
    if zeros.numpy().any():
        return "there are other numbers than zero"
    pads = np.zeros((2, len(sizes)), np.int64)
    pads[int(main.inputs[0] is found["x"]), axis] = sizes[axis]
    made = g.constant_node(pads.ravel())
    return [made, ir.Node("", "Pad", [found["x"], made.outputs[0]])]


_FULL = either(
    op("ConstantOfShape", Any("shape"), name="full"),
    op("Expand", Any("number"), Any("shape"), name="full"),
)
_ON_FULL = op(_KINDS, Any("x"), _FULL, name="main")
_ON_TABLE = op(_KINDS, Any("x"), Table("full"), name="main")
_ROWS = op("Gather", Any("table"), Any("places"), name="gather")
_BESIDE = either(
    op("Concat", Any("x"), Any("zeros"), name="main"),
    op("Concat", Any("zeros"), Any("x"), name="main"),
)

RULES = (
    Rule("a number for each element", _ON_FULL, _with_number),
    Rule("a number for each element", _ON_TABLE, _with_constant),
    Rule("the same row for each", Any("x") + _ROWS, _with_row),
    Rule("zeros beside a tensor", _BESIDE, _padded),
)
