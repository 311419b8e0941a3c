"""Gradients of activations as element-wise programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.plan.graph import Constant, Node, Value

_OF_X, _OF_Y = 2, 1  # which argument of a gradient (g, y, x) its slope is a function of

_SLOPES = {
    "hard_swish": ("hard_swish_slope", _OF_X),
    "softplus": ("sigmoid", _OF_X),
    "sigmoid": ("sigmoid_slope", _OF_Y),
    "tanh": ("tanh_slope", _OF_Y),
}


def slope(node: Node) -> Node | None:
    """The gradient of an activation: g times its derivative."""
    name, _, what = node.name.partition(" ")
    found = _known(name, node) if what == "gradient" else None
    if found is None:
        return None
    step, place, low = found
    g, at = node.args[0], node.args[place]
    if not isinstance(at, Value) or not isinstance(g, Value | Constant):
        return None
    if g.shape != at.shape:
        return None
    if any(each.dtype != np.float32 for each in (g, at, node.result)):
        return None
    code: list[Any] = [(step, 1, 0, 0, low, 0.0), ("mul", 0, 2, 0, 0.0, 0.0)]
    return Node("program", [g, at], {"code": code}, node.results, node.lines)


def _known(name: str, node: Node) -> tuple[str, int, float] | None:
    """(a step, the argument that it is of, its number)"""
    if name == "gelu":
        is_exact = node.options["approximate"] == "none"
        return "gelu_slope" if is_exact else "gelu_tanh_slope", _OF_X, 0.0
    if name == "swish":
        return "swish_slope", _OF_X, node.options["alpha"]
    if name == "leaky_relu":
        return "leaky_slope", _OF_X, node.options["negative_slope"]
    return (*_SLOPES[name], 0.0) if name in _SLOPES else None
