"""Half precision: values of float16 are of single precision inside of a plan.

No processor of today sums in float16 as fast, and an operator rounds its result alone:
between two of them the digits stay. What is float16 outside of the records, arguments,
results, and what eager calls read and give, is converted where it enters and leaves. A
cast to float16 rounds, as its author asks for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish._engine.pytree import mapped
from burnish.plan.graph import Array, Constant, Graph, Node, Value

_HALF, _SINGLE = np.dtype(np.float16), np.dtype(np.float32)


def widen(graph: Graph) -> None:
    """Give values of float16 single precision; `graph.halves` has what they were.

    Nothing of a graph with effects: these are of arrays that keep their dtype.
    """
    if graph.program.has_effects or graph.changed:
        return
    for node in graph.nodes:
        if node.name == "cast":
            _name(node)
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
    """Casts from float16 and to it, by what is left of them."""
    source = getattr(node.args[0], "dtype", None)
    if _HALF not in (source, node.result.dtype):
        return
    if {source, node.result.dtype} <= {_HALF, _SINGLE}:
        node.name = "detach" if source == _HALF else "to_float16"
    elif node.result.dtype == _HALF:
        node.name = "to_float16"


def _single(array: Array) -> Array:
    return array.astype(_SINGLE)
