"""Fuse table look-ups: an index in a list of one, negative indices counted by hand.

torch's newer exporter looks rows up by lists of one number. Keras counts negative
places from the end itself: `where(i < 0, i + rows, i)`, in one
operator or as a sum of products, is what Gather makes of a negative place anyway.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

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

_PLACES, _ROWS = Any("places"), Scalar("rows")
_NEGATIVE = op("Less", either(op("Cast", _PLACES), _PLACES), 0.0)
_FROM_END = _PLACES + _ROWS
_COUNTED = either(
    op("Where", _NEGATIVE, _FROM_END, _PLACES),
    op("Cast", _NEGATIVE) * _FROM_END + _PLACES * op("Cast", op("Not", _NEGATIVE)),
)


def _look_up(found: Match) -> Rewritten:
    main, dims = found.named["main"], g.static_dims(found["table"])
    axis = main.attributes.get_int("axis", 0)
    if dims is None or dims[axis] != found.number("rows"):
        return "what is added to negative places is not the table's length"
    kind = found["places"].dtype
    if kind is None or not kind.is_integer() or not kind.is_signed():
        return "the places are no whole numbers"
    options = list(main.attributes.values())
    return ir.Node("", "Gather", [found["table"], found["places"]], options)


# --- rows by places of one number, as torch's newer exporter has them ---

_ROWS_AT = op("GatherND", Any("table"), Any("listed"), name="main")


def _unlisted(listed: ir.Value) -> ir.Value | None:
    """Numbers that were made to lists of one; others may read the lists too."""
    node = g.maker_of(listed, "Unsqueeze")
    if node is None or listed.shape is None:
        return None
    last = g.integers(node.inputs[1]) in ([-1], [len(listed.shape) - 1])
    return node.inputs[0] if last else None


def _row(found: Match) -> Rewritten:
    places = _unlisted(found["listed"])
    if g.attribute(found.named["main"], "batch_dims", 0):
        return "each example has places of its own"
    if places is None:
        return "a place has more than one number"
    return ir.Node("", "Gather", [found["table"], places])


# --- one place in a list, whose axis is dropped behind ---

_IN_A_LIST = op("Gather", Any("table"), Scalar("listed"), name="main")
_DROPPED = op("Squeeze", _IN_A_LIST, Any("axes"))


def _at_one_place(found: Match) -> Rewritten:
    main, place = found.named["main"], found["listed"]
    axis, axes = main.attributes.get_int("axis", 0), g.integers(found["axes"])
    if place.shape is None or len(place.shape) != 1:
        return "the place is in no list"
    rank = len(found["table"].shape or ())
    if axes is None or len(axes) != 1 or not rank or (axes[0] - axis) % rank:
        return "another axis is dropped"
    made = g.constant_node(np.array(int(found.number("listed")), np.int64))
    inputs, options = [found["table"], made.outputs[0]], main.attributes.values()
    return [made, ir.Node("", "Gather", inputs, options)]


RULES = (
    Rule("Gather at one place", _DROPPED, _at_one_place),
    Rule("Gather of rows", _ROWS_AT, _row),
    Rule(
        "Gather at places that may be negative",
        op("Gather", Any("table"), _COUNTED, name="main"),
        _look_up,
    ),
)
