"""ReverseSequence over the whole axis becomes a slice with step -1."""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.passes.graph import constant, constant_node
from burnish.codegen.passes.pattern import Any, Match, Rule, either, op

_TO_THE_START = -(2**63) + 1


def _axis(found: Match) -> int:
    return found.named["main"].attributes.get_int("time_axis", 0)


def _check(found: Match) -> str | None:
    x, lengths = found["x"], constant(found["lengths"])
    if lengths is None or x.shape is None:
        return "the lengths are not known"
    if any(int(n) != x.shape[_axis(found)] for n in lengths.numpy().reshape(-1)):
        return "some sequence is shorter than the axis"
    return None


def _turned(found: Match) -> list[ir.Node]:
    numbers = (-1, _TO_THE_START, _axis(found), -1)
    held = [constant_node([number]) for number in numbers]
    inputs = [found["x"], *(node.outputs[0] for node in held)]
    return [*held, ir.Node("", "Slice", inputs)]


_LENGTHS = either(op("Expand", Any("lengths"), Any("shape")), Any("lengths"))
RULES = (
    Rule(
        "ReverseSequence of whole sequences",
        op("ReverseSequence", Any("x"), _LENGTHS, name="main"),
        _check,
        _turned,
        ("", "Slice", 13),
    ),
)
