"""Replace a splat constant (one value everywhere) by the scalar, or by padding."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import declared
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.pattern import Any, Match, Rule, Table, either, op
from burnish.codegen.passes.rules.attention.masks import filled
from burnish.codegen.weights.constants import trains

_KINDS = ("Add", "Max", "Min", "Mul")


def _check(found: Match) -> str | None:
    full, x = found.named["full"].outputs[0], found["x"]
    number = filled(full)
    if number is None or x.dtype is None or full.dtype not in (None, x.dtype):
        return "it is not full of one number"
    if not g.proven_equal(x, full):
        return "it may widen the other side"
    exact = np.array(number, x.dtype.numpy())
    return None if float(exact) == number else "the number is not known exactly"


def _with_number(found: Match) -> list[ir.Node]:
    node, x = found.named["main"], found["x"]
    number = filled(found.named["full"].outputs[0])
    made = g.constant_node(np.array(number, g.unwrap(x.dtype).numpy()))
    return [made, ir.Node("", node.op_type, [x, made.outputs[0]])]


def _check_constant(found: Match) -> str | None:
    full, x = found["full"], found["x"]
    if x.dtype is None or full.dtype != x.dtype or filled(full) is None:
        return "it is not full of one number"
    return None if g.proven_equal(x, full) else "it may widen the other side"


def _with_constant(found: Match) -> list[ir.Node]:
    node, tensor = found.named["main"], g.unwrap(g.constant(found["full"]))
    one = tensor.numpy().reshape(-1)[:1].reshape(())
    made = g.constant_node(one)
    return [made, ir.Node("", node.op_type, [found["x"], made.outputs[0]])]


# --- the same row for each ---


def _check_row(found: Match) -> str | None:
    places, gather = found["places"], found.named["gather"]
    number, table = filled(places), g.constant(found["table"])
    if number is None or number < 0 or table is None or len(table.shape) != 2:
        return "it is no row of a table for each"
    if g.attribute(gather, "axis", 0):
        return "it is a column"
    if not g.proven_equal(found["x"], gather.outputs[0]):
        return "it may widen the other side"
    return None if len(declared(places) or []) else "it is one row"


def _with_row(found: Match) -> list[ir.Node]:
    number = g.unwrap(filled(found["places"]))
    made = g.constant_node(np.array(int(number), np.int64))
    gather = found.named["gather"]
    row = ir.Node("", "Gather", [found["table"], made.outputs[0]])
    g.named_like(row, gather)
    return [made, row, ir.Node("", "Add", [found["x"], row.outputs[0]])]


_FULL = either(
    op("ConstantOfShape", Any("shape"), name="full"),
    op("Expand", Any("number"), Any("shape"), name="full"),
)


# --- zeros that are stored to be joined: for devices that cannot pad channels ---


def _check_beside(found: Match) -> str | None:
    zeros, x = g.constant(found["zeros"]), declared(found["x"])
    if zeros is None or trains(found["zeros"]) or g.constant(found["x"]) is not None:
        return "nothing beside it is constant"
    if not zeros.dtype.is_floating_point() or len(zeros.shape) < 2 or x is None:
        return "it is no part of a tensor with several axes"
    if _joined_along(found, len(zeros.shape)) == 0:
        return "it is an example of its own beside others"
    return "there are other numbers than zero" if zeros.numpy().any() else None


def _joined_along(found: Match, rank: int) -> int:
    return found.named["main"].attributes.get_int("axis", 0) % rank


def _padded(found: Match) -> list[ir.Node]:
    main, zeros = found.named["main"], g.unwrap(g.constant(found["zeros"]))
    sizes = list(zeros.shape.numpy())
    axis = _joined_along(found, len(sizes))
    pads = np.zeros((2, len(sizes)), np.int64)
    pads[int(main.inputs[0] is found["x"]), axis] = sizes[axis]
    made = g.constant_node(pads.ravel())
    return [made, ir.Node("", "Pad", [found["x"], made.outputs[0]])]


RULES = (
    *(
        Rule(
            "a number for each element",
            either(
                op(kind, Any("x"), _FULL, name="main"),
                op(kind, _FULL, Any("x"), name="main"),
            ),
            _check,
            _with_number,
        )
        for kind in _KINDS
    ),
    *(
        Rule(
            "a number for each element",
            op(kind, Any("x"), Table("full"), name="main"),
            _check_constant,
            _with_constant,
        )
        for kind in _KINDS
    ),
    Rule(
        "the same row for each",
        Any("x") + op("Gather", Any("table"), Any("places"), name="gather"),
        _check_row,
        _with_row,
    ),
    Rule(
        "zeros beside a tensor",
        either(
            op("Concat", Any("x"), Any("zeros"), name="main"),
            op("Concat", Any("zeros"), Any("x"), name="main"),
        ),
        _check_beside,
        _padded,
    ),
)
