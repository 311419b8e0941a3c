"""Remove inputs of control-flow bodies that are in fact captured outer values.

The specification gives a body of Loop, Scan or SequenceMap the inputs that its operator
feeds and one of If none. Some tools list what a body reads from outside among them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burnish.codegen.errors import ReadError

_FED: dict[str, Callable[[Any], int]] = {
    "If": lambda node: 0,
    "Loop": lambda node: max(len(node.input), 2),
    "Scan": lambda node: len(node.input),
    "SequenceMap": lambda node: len(node.input),
}


def drop_captured(body: Any, outside: tuple[frozenset[str], ...] = ()) -> None:
    """Keep of the inputs of all bodies inside those that their operators feed.

    outside: the names of each graph around this one.
    """
    known = (*outside, _names(body))
    for node in body.node:
        graphs = [
            g for a in node.attribute for g in (a.g, *a.graphs) if g.node or g.output
        ]
        fed = _FED.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        for graph in graphs:
            if fed is not None:
                _drop(node, graph, fed(node), known)
            drop_captured(graph, known)


def _names(body: Any) -> frozenset[str]:
    """The names in a graph or function, which its bodies may read."""
    given = [i if isinstance(i, str) else i.name for i in body.input]
    made = [name for node in body.node for name in node.output if name]
    held = [tensor.name for tensor in getattr(body, "initializer", ())]
    return frozenset((*given, *made, *held))


def _drop(node: Any, graph: Any, fed: int, outside: tuple[frozenset[str], ...]) -> None:
    """Drop the last inputs that have a value, until as many are left as are fed."""
    known = (*outside, {tensor.name for tensor in graph.initializer})
    for place in range(len(graph.input) - 1, fed - 1, -1):
        name = graph.input[place].name
        if not any(name in names for names in known):
            raise ReadError(
                f"node {node.name or next(iter(node.output), '')!r} ({node.op_type}): "
                f"expected a body with {fed} inputs, as many as the node feeds, or "
                f"more that the graph outside knows by name, got {name!r}; export the "
                "model again"
            )
        del graph.input[place]
