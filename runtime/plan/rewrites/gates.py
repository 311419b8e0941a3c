"""Gates of channels before a 1 x 1 convolution: its weights are multiplied instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from burnish.plan.graph import Constant, Node, Value

if TYPE_CHECKING:
    from burnish.plan.rewrites.fuse import Around

GATE = "gate"
"""The option of a convolution that says by what its input's channels are multiplied."""

_FEWER = 4
"""How many times fewer weights than a sample's elements there have to be: they are
read, multiplied and written for each."""


def gated_conv(node: Node, around: Around) -> Node | None:
    """conv(x * gate) -> conv(x) with weights * gate, for each sample."""
    if node.name != "conv" or not _is_pointwise(node):
        return None
    made = around.only(node.args[0], "mul")
    if made is None:
        return None
    for x, gate in (made.args, made.args[::-1]):
        if _is_gate(gate, x) and x.size >= _FEWER * x.shape[0] * node.args[1].size:
            lines = [*made.lines, *(e for e in node.lines if e not in made.lines)]
            args, options = [x, *node.args[1:]], {**node.options, GATE: gate}
            return Node(node.name, args, options, node.results, lines, node.act)
    return None


def _is_pointwise(node: Node) -> bool:
    weight, bias = node.args[1:3]
    known = isinstance(weight, Constant) and not isinstance(bias, Value)
    return known and node.options["groups"] == 1 and set(weight.shape[2:]) == {1}


def _is_gate(gate: Any, x: Any) -> bool:
    """Whether it has a number for each channel of x, in each sample."""
    if not isinstance(gate, Value) or not isinstance(x, Value) or len(x.shape) < 3:
        return False
    is_single = gate.dtype == x.dtype == np.float32
    return is_single and gate.shape == (*x.shape[:2], *(1 for _ in x.shape[2:]))
