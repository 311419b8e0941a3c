"""A ModelProto's graphs, their nodes and types; the opsets that are read.

Everything that walks over a message before the Graph is built from it does so here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

NEWEST = 28
OLDEST = 16  # older opsets are upgraded to this one


def all_nodes(graph: Any) -> Iterator[Any]:
    """Every node of a graph or function, those of graphs in nodes included."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in _graphs(attribute):
                yield from all_nodes(inner)


def all_bodies(bodies: Iterable[Any]) -> Iterator[Any]:
    """The graphs and functions, and the graphs in their nodes, outer ones first."""
    for body in bodies:
        yield body
        for node in body.node:
            for attribute in node.attribute:
                yield from all_bodies(_graphs(attribute))


def _graphs(attribute: Any) -> Iterator[Any]:
    if attribute.HasField("g"):
        yield attribute.g
    yield from attribute.graphs


def drop_maps(graph: Any) -> None:
    """Maps lose their type: the Graph has none, and Python's dictionaries need none.

    The result of DictVectorizer, whose type is that of the values, says it instead.
    """
    _type_vectors(graph)
    for info in (*graph.input, *graph.output, *graph.value_info):
        kinds = (info.type, info.type.sequence_type.elem_type)
        if any(kind.HasField("map_type") for kind in kinds):
            info.ClearField("type")


def _type_vectors(graph: Any) -> None:
    given = (*graph.input, *graph.value_info)
    known = {info.name: info.type.map_type for info in given}
    infos = {info.name: info for info in (*graph.output, *graph.value_info)}
    for node in graph.node:
        if node.op_type != "DictVectorizer" or node.domain != "ai.onnx.ml":
            continue
        kind = known.get(node.input[0]) if node.input else None
        name = next(iter(node.output), "")
        info = infos.get(name) or graph.value_info.add(name=name)
        if kind is not None and not info.type.tensor_type.elem_type:
            element = kind.value_type.tensor_type.elem_type
            info.type.tensor_type.elem_type = element
