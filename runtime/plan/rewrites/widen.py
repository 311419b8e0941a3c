"""Half precision: values of float16 are of single precision inside of a plan.

No processor of today sums in float16 as fast, and an operator rounds its result alone:
between two of them the digits stay. What is float16 outside of the records, arguments,
results, and what eager calls read and give, is converted where it enters and leaves. A
cast to float16 rounds, as its author asks for; and so do numbers of Python beside
float16, as in the plain call: x == 0.1 is true for the float16 next to 0.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish._engine.pytree import mapped
from burnish.plan.graph import Array, Constant, Graph, Node, Value

_HALF, _SINGLE = np.dtype(np.float16), np.dtype(np.float32)

_ELEMENT_WISE = {
    *("equal", "not_equal", "less", "less_or_equal", "greater", "greater_or_equal"),
    *("add", "sub", "mul", "div", "pow_", "mod", "floor_div"),
    *("where", "maximum", "minimum", "clip", "hard_tanh"),
}
"""Operators whose numbers have the dtype of their arrays."""


def widen(graph: Graph) -> None:
    """Give values of float16 single precision; `graph.halves` has what they were.

    Nothing of a graph with effects: these are of arrays that keep their dtype.
    """
    if graph.program.has_effects or graph.changed:
        return
    for node in graph.nodes:
        if node.name == "cast":
            _name(node)
        elif node.name in _ELEMENT_WISE and _is_half(node):
            node.args = [_rounded(arg) for arg in node.args]
            node.options = {k: _rounded(each) for k, each in node.options.items()}
    for place, value in graph.values.items():
        if value.dtype == _HALF:
            graph.halves[place] = Value(place, value.shape, _HALF)
            value.dtype = _SINGLE
    wide: dict[int, Constant] = {}

    def argument(arg: Any) -> Any:
        if isinstance(arg, np.float16):
            return float(arg)
        if not isinstance(arg, Constant) or arg.dtype != _HALF:
            return arg
        if id(arg) not in wide:
            wide[id(arg)] = arg.then(_single)
        return wide[id(arg)]

    for node in graph.nodes if graph.halves else ():
        node.args = [*mapped(node.args, argument)]


def _name(node: Node) -> None:
    """Name a cast from or to float16 by what remains of it in single precision."""
    source = getattr(node.args[0], "dtype", None)
    if _HALF not in (source, node.result.dtype):
        return
    if {source, node.result.dtype} <= {_HALF, _SINGLE}:
        node.name = "detach" if source == _HALF else "to_float16"
    elif node.result.dtype == _HALF:
        node.name = "to_float16"


def _is_half(node: Node) -> bool:
    """Whether all that a node computes with and that has a dtype is float16."""
    operands = [arg for arg in node.args if isinstance(arg, Value | Constant)]
    kinds = {each.dtype for each in operands if each.dtype != np.bool_}
    return kinds == {_HALF}


def _rounded(arg: Any) -> Any:
    """A number as float16 has it; one beyond its range, or below, as it is."""
    if type(arg) is not float:  # a number of NumPy has a dtype of its own
        return arg
    with np.errstate(over="ignore"):
        half = float(np.float16(arg))
    return half if half and np.isfinite(half) else arg


def _single(array: Array) -> Array:
    return array.astype(_SINGLE)
