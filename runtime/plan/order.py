"""The order of a plan's nodes: eager calls of the arguments alone come first.

Python that looks at what the call was given would cut the records of a step in two.
"""

from __future__ import annotations

from collections.abc import Container

from burnish.capture.line import refs
from burnish.plan.graph import Graph, Node


def arguments_first(graph: Graph, known: Container[str]) -> list[Node]:
    """The nodes, those without a kernel that read arguments and constants alone first.

    known: the names of nodes with kernels. What such a node reads comes with it; a node
    with effects stays where it is. Kernels that look at targets come first as well:
    behind an update none may find that one is no class.
    """
    program = graph.program
    given = {*range(program.takes), *graph.folded}
    given |= program.fixed.keys() - graph.changed
    alone: dict[int, Node] = {}  # by each place that they make
    early: set[int] = set()
    for node in graph.nodes:
        has_effects = any(line.call.always for line in node.lines)
        if has_effects or not node.reads <= given | alone.keys():
            continue
        alone |= dict.fromkeys(_made(node), node)
        if node.name not in known or node.name == "target_classes":
            early |= {id(each) for each in _behind(node, alone)}
    first = [node for node in graph.nodes if id(node) in early]
    return first + [node for node in graph.nodes if id(node) not in early]


def _made(node: Node) -> set[int]:
    return {ref.place for line in node.lines for ref in refs(line.call.results)}


def _behind(node: Node, alone: dict[int, Node]) -> list[Node]:
    """A node, and all that its arguments are computed by."""
    found, seen = [node], set[int]()
    for each in found:  # which grows meanwhile
        for place in each.reads - seen:
            seen.add(place)
            if place in alone:
                found.append(alone[place])
    return found
