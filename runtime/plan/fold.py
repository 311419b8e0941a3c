"""Folding: what parameters alone decide is computed once, for each of their values."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.operator import registry
from burnish.plan.graph import Array, Constant, Graph, Node, combined


def fold(graph: Graph) -> None:
    """Take out the nodes whose arguments are all constant; `graph.folded` has them."""
    kept = []
    for node in graph.nodes:
        node.args = [_known(graph, arg) for arg in node.args]
        if _is_constant(node) and node.result.place not in graph.results:
            graph.folded[node.result.place] = _computed(node)
        else:
            kept.append(node)
    graph.nodes = kept


def _known(graph: Graph, arg: Any) -> Any:
    return graph.folded.get(getattr(arg, "place", -1), arg)


def _is_constant(node: Node) -> bool:
    arrays = [arg for arg in node.args if not isinstance(arg, int | float | None)]
    return (
        node.name in registry
        and len(node.results) == 1
        and bool(arrays)
        and all(isinstance(arg, Constant) for arg in arrays)
    )


def _computed(node: Node) -> Constant:
    value, options = registry[node.name], node.lines[0].call.options
    parts = [arg if isinstance(arg, Constant) else None for arg in node.args]

    def compute(*arrays: Array | None) -> Array:
        args = [
            arg if array is None else array
            for arg, array in zip(node.args, arrays, strict=True)
        ]
        return np.asarray(value(*args, **options))

    return combined(compute, *parts)


def scale_and_shift(node: Node) -> tuple[Constant, Constant] | None:
    """What a batch norm of constants multiplies by and adds; None for another one."""
    constants = node.args[1:]
    if not all(isinstance(arg, Constant) for arg in constants):
        return None
    eps = node.options["eps"]

    def factor(scale: Array, var: Array) -> Array:
        return scale / np.sqrt(var + np.asarray(eps, var.dtype))

    scale, bias, mean, var = constants
    by = combined(factor, scale, var)
    return by, combined(lambda b, m, f: b - m * f, bias, mean, by)
