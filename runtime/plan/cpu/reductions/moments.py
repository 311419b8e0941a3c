"""Reductions as other reductions with elementwise steps before and after them."""

from __future__ import annotations

import math
from typing import Any

from burnish.ops._shapes import reduced_axes
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.table import LOWERED, check, lower, need
from burnish.plan.graph import Node, Value

_BETWEEN = {
    "reduce_min": ("neg", "reduce_max", "neg"),
    "reduce_l2": ("square", "reduce_sum", "sqrt"),
}
"""A step of each element, a reduction, and a step of each result."""


@lower(*_BETWEEN)
def between(b: Builder, node: Node) -> None:
    x, y = node.args[0], node.result
    _check(node, x)
    before, name, after = _BETWEEN[node.name]
    made = _steps(b, x.shape, [x], [(before, 0, 0)])
    total = _reduced(b, name, made, _kept(node, x), node.options["axes"])
    _steps(b, y.shape, [_shaped(b, total, y.shape)], [(after, 0, 0)], y)


@lower("var", "std")
def variance(b: Builder, node: Node) -> None:
    """The mean first, then the mean squared distance from it."""
    x, y, axes = node.args[0], node.result, node.options["axis"]
    _check(node, x)
    shape = _kept(node, x)
    count = x.size // math.prod(shape)
    divisor = count - node.options["correction"]
    need(divisor > 0, "its divisor is 0")
    mean = _reduced(b, "reduce_mean", x, shape, axes)
    steps = [("sub", 0, 1), ("square", 2, 0)]
    squares = _steps(b, x.shape, [x, mean], steps)
    total = _reduced(b, "reduce_sum", squares, shape, axes)
    steps = [("mul", 0, 1), ("sqrt", 2, 0)][: 1 + (node.name == "std")]
    _steps(b, y.shape, [_shaped(b, total, y.shape), 1 / divisor], steps, y)


def _check(node: Node, x: Any) -> None:
    need(isinstance(x, Value) and x.shape and x.size, "its input has no elements")
    check(node, x)


def _kept(node: Node, x: Value) -> tuple[int, ...]:
    """The shape of the result with the axes that are reduced."""
    axes = node.options.get("axes", node.options.get("axis"))
    chosen = reduced_axes(axes, len(x.shape))
    return tuple(1 if i in chosen else n for i, n in enumerate(x.shape))


def _reduced(
    b: Builder, name: str, x: Value, shape: tuple[int, ...], axes: Any
) -> Value:
    made = b.unnamed_value(shape)
    options = {"axes": axes, "keepdims": True}
    LOWERED[name](b, Node(name, [x], options, [made], []))
    return made


def _shaped(b: Builder, x: Value, shape: tuple[int, ...]) -> Value:
    """x with the shape of the result, which may lack axes of size 1."""
    if x.shape == shape:
        return x
    made = b.unnamed_value(shape)
    LOWERED["reshape"](b, Node("reshape", [x], {"shape": shape}, [made], []))
    return made


def _steps(
    b: Builder,
    shape: tuple[int, ...],
    args: list[Any],
    steps: list[tuple[str, int, int]],
    result: Value | None = None,
) -> Value:
    """A program's result; steps: names, and the registers that they read."""
    made = result or b.unnamed_value(shape)
    code = [(name, first, second, 0, 0.0, 0.0) for name, first, second in steps]
    LOWERED["program"](b, Node("program", args, {"code": code}, [made], []))
    return made
