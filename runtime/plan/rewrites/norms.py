"""Rules for batch norm by the batch's statistics, and for its gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from burnish.plan.graph import Node, Value

if TYPE_CHECKING:
    from burnish.plan.rewrites.fuse import Around

NORM = "channel_norm"
"""Readers of the statistics run before the fused readers: the norm stays first."""

_BOUNDS = {"relu": (0.0, float("inf")), "relu6": (0.0, 6.0)}


def bounded_norm(node: Node, around: Around) -> Node | None:
    """relu or relu6 after a batch norm -> its bounds."""
    if node.name not in _BOUNDS or not isinstance(node.args[0], Value):
        return None
    place = node.args[0].place
    norm = around.makers.get(place)
    if norm is None or norm.name != NORM or norm.act[0] != "none":
        return None
    is_alone = len(around.readers.get(place, ())) == 1
    if place != norm.result.place or place in around.graph.results or not is_alone:
        return None
    results = [node.result, *norm.results[1:]]
    act = ("clip", *_BOUNDS[node.name])
    lines = norm.lines + node.lines
    return Node(NORM, norm.args, norm.options, results, lines, act)


def gated_norm(node: Node, around: Around) -> Node | None:
    """A batch norm's gradient of what bounds let through -> one pass over both."""
    if node.name != f"{NORM} gradient":
        return None
    gate = around.only(node.args[0], "gated")
    if gate is None or gate.options["slope"] != 1:
        return None
    g, y = gate.args[:2]
    x = node.args[6]  # behind three gradients and three results
    if not all(isinstance(each, Value) and each.shape == x.shape for each in (g, y)):
        return None
    if any(each.dtype != np.float32 for each in (g, y)):
        return None
    above, below = gate.options["above"], gate.options["below"]
    passes = y, float(above), float("inf") if below is None else float(below)
    options = {**node.options, "gate": passes}
    lines = gate.lines + node.lines
    return Node(node.name, [g, *node.args[1:]], options, node.results, lines)
