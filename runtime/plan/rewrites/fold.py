"""Constant folding: compute functions of parameters once per version of the values.

Results without elements are constants whatever they are computed from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burnish.operator import registry
from burnish.plan.graph import Array, Constant, Graph, Node, Value, combined, constant


def fold(graph: Graph) -> None:
    """Take out the nodes whose arguments are all constant; `graph.folded` has them."""
    kept = []
    for node in graph.nodes:
        node.args = [_known(graph, arg) for arg in node.args]
        places = [value.place for value in node.results]
        if not graph.results.isdisjoint(places):
            kept.append(node)
        elif _is_empty(node):
            graph.folded |= {v.place: _empty(v) for v in node.results}
        elif _is_constant(node):
            graph.folded |= zip(places, _computed(node), strict=True)
        else:
            kept.append(node)
    graph.nodes = kept


def _known(graph: Graph, arg: Any) -> Any:
    return graph.folded.get(getattr(arg, "place", -1), arg)


def _is_empty(node: Node) -> bool:
    """Whether its results have no elements, and it has no other effect."""
    return (
        bool(node.results)
        and not any(value.size for value in node.results)
        and not any(line.call.always for line in node.lines)
    )


def _empty(value: Value) -> Constant:
    return constant(np.empty(value.shape, value.dtype))


def _is_constant(node: Node) -> bool:
    arrays = [arg for arg in node.args if not isinstance(arg, int | float | None)]
    return (
        node.name in registry
        and bool(node.results)
        and bool(arrays)
        and all(isinstance(arg, Constant) for arg in arrays)
    )


def _computed(node: Node) -> list[Constant]:
    """The results of a node, each computed from its constant arguments."""
    value, options = registry[node.name], node.options
    parts = [arg if isinstance(arg, Constant) else None for arg in node.args]

    def result(number: int) -> Callable[..., Array]:
        def compute(*arrays: Array | None) -> Array:
            args = [
                arg if array is None else array
                for arg, array in zip(node.args, arrays, strict=True)
            ]
            made = value(*args, **options)
            return np.asarray(made[number] if several else made)

        return compute

    several = isinstance(node.lines[0].call.results, tuple | list)
    return [combined(result(i), *parts) for i in range(len(node.results))]


def scale_and_shift(node: Node) -> tuple[Constant, Constant] | None:
    """The scale and shift of a batch norm of constants; None for another one."""
    given = dict(zip(registry["batch_norm"].arguments, node.args, strict=True))
    mean, var = given["running_mean"], given["running_var"]
    weight, bias = given["weight"], given["bias"]
    if not isinstance(mean, Constant) or not isinstance(var, Constant):
        return None
    if not all(isinstance(arg, Constant | None) for arg in (weight, bias)):
        return None
    eps = node.options["eps"]

    def factor(var: Array, weight: Array | None) -> Array:
        one = var.dtype.type(1)
        return (one if weight is None else weight) / np.sqrt(var + var.dtype.type(eps))

    def shift(mean: Array, by: Array, bias: Array | None) -> Array:
        return -mean * by if bias is None else bias - mean * by

    by = combined(factor, var, weight)
    return by, combined(shift, mean, by, bias)
