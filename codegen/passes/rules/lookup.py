"""Look-ups in a table: Keras counts negative places from the end itself.

`where(i < 0, i + rows, i)`, in one operator or as a sum of products, is what Gather
makes of a negative place anyway.
"""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.passes.graph import attribute, scalar, static_dims
from burnish.codegen.passes.pattern import Any, Match, Rule, Scalar, either, op

_PLACES, _ROWS = Any("places"), Scalar("rows")
_NEGATIVE = op("Less", either(op("Cast", _PLACES), _PLACES), 0.0)
_FROM_END = _PLACES + _ROWS
_COUNTED = either(
    op("Where", _NEGATIVE, _FROM_END, _PLACES),
    op("Cast", _NEGATIVE) * _FROM_END + _PLACES * op("Cast", op("Not", _NEGATIVE)),
)


def _check(found: Match) -> str | None:
    """The number added is that of the table's rows."""
    axis = attribute(found.named["main"], "axis", 0)
    dims = static_dims(found["table"])
    assert isinstance(axis, int)
    if dims is None or dims[axis] != scalar(found["rows"]):
        return "what is added to negative places is not the table's length"
    kind = found["places"].dtype
    if kind is None or not kind.is_integer() or not kind.is_signed():
        return "the places are no whole numbers"
    return None


def _look_up(found: Match) -> ir.Node:
    main = found.named["main"]
    options = list(main.attributes.values())
    return ir.Node("", "Gather", [found["table"], found["places"]], options)


RULES = (
    Rule(
        "Gather at places that may be negative",
        op("Gather", Any("table"), _COUNTED, name="main"),
        _check,
        _look_up,
        ("", "Gather", 13),
    ),
)
