"""ReverseSequence over the whole axis becomes a slice with step -1."""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.passes import graph as g
from burnish.codegen.passes.pattern import Any, Match, Rewritten, Rule, either, op

_TO_THE_START = -(2**63) + 1


def _is_size_of(value: ir.Value, x: ir.Value, axis: int) -> bool:
    """Whether a value is x.shape[axis], as tf2onnx asks for it to write a ReverseV2."""
    part = g.maker_of(g.behind(value, "Cast", "Squeeze", "Unsqueeze"), "Gather")
    asked = None if part is None else g.maker_of(part.inputs[0], "Shape")
    if part is None or asked is None or {"start", "end"} & asked.attributes.keys():
        return False
    return asked.inputs[0] is x and g.integers(part.inputs[1]) == [axis]


def _turned(found: Match) -> Rewritten:
    x, lengths = found["x"], g.constant(found["lengths"])
    axis = found.named["main"].attributes.get_int("time_axis", 0)
    if not _is_size_of(found["lengths"], x, axis):
        if lengths is None or x.shape is None:
            return "the lengths are not known"
        if any(int(n) != x.shape[axis] for n in lengths.numpy().reshape(-1)):
            return "some sequence is shorter than the axis"
    numbers = (-1, _TO_THE_START, axis, -1)
    held = [g.constant_node([number]) for number in numbers]
    inputs = [x, *(node.outputs[0] for node in held)]
    return [*held, ir.Node("", "Slice", inputs)]


_LENGTHS = either(op("Expand", Any("lengths"), Any("shape")), Any("lengths"))
RULES = (
    Rule(
        "ReverseSequence of whole sequences",
        op("ReverseSequence", Any("x"), _LENGTHS, name="main"),
        _turned,
    ),
)
