"""Find the author's module of each quantization node, and its place among nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import onnx_ir as ir

from burnish.codegen.passes import graph as g
from burnish.codegen.program import demand_order, level_names
from burnish.codegen.scopes import scope_of, write_scope

_MEASURES = frozenset(("Shape", "Size"))


def place(model: ir.Model, nodes: Iterable[ir.Node]) -> None:
    """Put roundings where their numbers are made, but into no module of one layer."""
    made = list(nodes)
    ours = set(made)
    scopes = {node: scope_of(node) for node in model.graph if node not in ours}
    inside = {
        level_names(scope)[:depth]
        for scope in scopes.values()
        for depth in range(len(scope))
    }
    for node in made:
        maker = g.maker_of(node.inputs[0])
        scope = () if maker is None else scope_of(maker)
        path = level_names(scope)
        readers = [scopes.get(user, ()) for user, _ in node.outputs[0].uses()]
        at_home = all(level_names(reader)[: len(path)] == path for reader in readers)
        if scope and path not in inside and not at_home:
            scope = scope[:-1]
        write_scope(node, scope)


def sort_by_need(graph: ir.Graph) -> None:
    """Sort nodes by what needs them, so that equal modules have equal orders.

    Roundings are named by their order, and quantizers write nodes in any. Numbers that
    several nodes read come before what one of them needs besides, the longest way to
    them first: an encoder before the decoder that reads it in each layer.
    """
    every = set(graph)
    inside = {node: [m for m in _makers(node) if m in every] for node in graph}
    read = {maker for makers in inside.values() for maker in makers}
    results = [v.producer() for v in graph.outputs]
    ends = [node for node in results if node is not None and node in every]
    first = _shared(ends, inside)
    ends += [node for node in inside if node not in read]
    order = [*demand_order([*first, *ends], inside.__getitem__)]
    graph.remove(order)
    graph.extend(order)


def _shared(
    ends: list[ir.Node], inside: Mapping[ir.Node, list[ir.Node]]
) -> list[ir.Node]:
    """The nodes whose numbers, not their sizes alone, several others read."""
    makers = {n: [] if n.op_type in _MEASURES else made for n, made in inside.items()}
    used = [*demand_order(ends, makers.__getitem__)]
    readers = Counter(maker for node in used for maker in {*makers[node]})
    depth: dict[ir.Node, int] = {}  # 0 for sizes, and what is computed from them alone
    for node in used:
        longest = max((depth[maker] for maker in makers[node]), default=0)
        is_given = any(v is not None and v.is_graph_input() for v in node.inputs)
        of_data = longest or (is_given and node.op_type not in _MEASURES)
        depth[node] = longest + 1 if of_data else 0

    def deepest(node: ir.Node) -> list[ir.Node]:
        return sorted(makers[node], key=depth.__getitem__, reverse=True)

    order = demand_order(ends, deepest)
    return [node for node in order if readers[node] > 1 and depth[node]]


def _makers(node: ir.Node) -> list[ir.Node]:
    """The nodes whose results a node reads, in its bodies too."""
    inner = [reader for body in g.bodies(node) for reader in body]
    made = [g.maker_of(value) for value in node.inputs]
    made += [maker for reader in inner for maker in _makers(reader)]
    return [maker for maker in made if maker is not None]
