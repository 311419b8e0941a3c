"""Gradients of activations as element-wise programs."""

from __future__ import annotations

import numpy as np

from burnish.kernels.elementwise import of_slope
from burnish.kernels.elementwise import slope as known
from burnish.plan.graph import Constant, Node, Value

_PLACES = {"y": 1, "x": 2}
"""Of a gradient's arguments (g, y, x), those that a slope is a function of."""


def slope(node: Node) -> Node | None:
    """The gradient of an activation: g times its derivative."""
    name, _, what = node.name.partition(" ")
    found = known(name, node.options) if what == "gradient" else None
    if found is None:
        return None
    step, place, low = found
    g, at = node.args[0], node.args[_PLACES[place]]
    if not isinstance(at, Value) or not isinstance(g, Value | Constant):
        return None
    if g.shape != at.shape:
        return None
    if any(each.dtype != np.float32 for each in (g, at, node.result)):
        return None
    code = of_slope(step, low)
    return Node("program", [g, at], {"code": code}, node.results, node.lines)
