"""Assignments to a slice at constant places (`x[:, 2:4] = y`) become a Concat."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from burnish.codegen.passes import graph as g
from burnish.codegen.passes.pattern import Any, Match, Rewritten, Rule, op


def _slice(sizes: tuple[int, ...], at: np.ndarray) -> tuple[int, int, int] | None:
    """The axis, the first and the last place behind it that are written."""
    *counts, depth = at.shape
    if not at.size or len(counts) != depth or depth > len(sizes):
        return None
    starts = at[(0,) * depth]
    grid = np.moveaxis(np.indices(counts), 0, -1) + starts
    if starts.min() < 0 or not np.array_equal(at, grid):
        return None
    parts = [axis for axis in range(depth) if counts[axis] != sizes[axis]]
    if len(parts) != 1 or (starts + counts > sizes[:depth]).any():
        return None
    start = int(starts[parts[0]])
    return parts[0], start, start + counts[parts[0]]


def _concat(found: Match) -> Rewritten:
    data = found["data"]
    sizes, at = g.static_dims(data), g.constant(found["at"])
    if g.attribute(found.named["main"], "reduction", "none") != "none":
        return "what is written is added to what is there"
    if at is None:
        return "the places are computed"
    if sizes is None:
        return "the shape is not known"
    place = _slice(sizes, at.numpy())
    if place is None:
        return "the places are no slice along one axis"
    axis, start, stop = place
    made: list[ir.Node] = []

    def part(begin: int, end: int) -> list[ir.Value]:
        if begin == end:
            return []
        held = [g.constant_node([number]) for number in (begin, end, axis)]
        node = ir.Node("", "Slice", [data, *(each.outputs[0] for each in held)])
        made.extend((*held, node))
        return [node.outputs[0]]

    parts = [*part(0, start), found["updates"], *part(stop, sizes[axis])]
    return [*made, ir.Node("", "Concat", parts, [ir.AttrInt64("axis", axis)])]


_WRITTEN = op("ScatterND", Any("data"), Any("at"), Any("updates"), name="main")
RULES = (Rule("write to a slice", _WRITTEN, _concat),)
