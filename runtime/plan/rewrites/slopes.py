"""Gradients of activations as element-wise programs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burnish.kernels.elementwise import of_slope
from burnish.kernels.elementwise import slope as known
from burnish.plan.graph import Constant, Node, Value

_PLACES = {"y": 1, "x": 2}
"""Of a gradient's arguments (g, y, x), those that a slope is a function of."""


def slope(node: Node) -> Node | None:
    """The gradient of an activation: g times its derivative."""
    name, _, what = node.name.partition(" ")
    if name == "erf" and what == "gradient":
        return _bell(node)
    found = known(name, node.options) if what == "gradient" else None
    if found is None:
        return None
    step, place, low = found
    g, at = node.args[0], node.args[_PLACES[place]]
    code = of_slope(step, low)
    return _program(node, [g, at], code) if _fits(node, g, at) else None


def _bell(node: Node) -> Node | None:
    """The gradient of the error function: g * 2 / sqrt(pi) * exp(-x * x)"""
    g, x = node.args[0], node.args[_PLACES["x"]]
    steps = [
        ("square", 1, 0),
        ("neg", 3, 0),
        ("exp", 4, 0),
        ("mul", 5, 2),
        ("mul", 0, 6),
    ]
    code = [(name, a, b, 0, 0.0, 0.0) for name, a, b in steps]
    args = [g, x, 2 / math.sqrt(math.pi)]
    return _program(node, args, code) if _fits(node, g, x) else None


def _fits(node: Node, g: Any, at: Any) -> bool:
    if not isinstance(at, Value) or not isinstance(g, Value | Constant):
        return False
    is_single = all(each.dtype == np.float32 for each in (g, at, node.result))
    return g.shape == at.shape and is_single


def _program(node: Node, args: list[Any], code: list[Any]) -> Node:
    return Node("program", args, {"code": code}, node.results, node.lines)
