"""A model file without what its author called things: inputs and outputs keep names.

What graph optimizers, converters and hand-written exporters leave behind.
"""

from __future__ import annotations

import onnx


def stripped(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy whose nodes, weights and inner values are numbered, without metadata."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    graph = bare.graph
    kept = {value.name for value in (*graph.input, *graph.output)}
    names: dict[str, str] = {name: name for name in kept}
    _strip(graph, names)
    bare.producer_name = ""
    del bare.metadata_props[:]
    return bare


def _strip(graph: onnx.GraphProto, names: dict[str, str]) -> None:
    def short(name: str) -> str:
        return names.setdefault(name, f"t{len(names)}") if name else ""

    for tensor in graph.initializer:
        tensor.name = short(tensor.name)
        del tensor.metadata_props[:]
    for value in (*graph.input, *graph.output, *graph.value_info):
        value.name = short(value.name)
        del value.metadata_props[:]
    for node in graph.node:
        node.name = node.doc_string = ""
        del node.metadata_props[:]
        node.input[:] = [short(name) for name in node.input]
        node.output[:] = [short(name) for name in node.output]
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                if inner.node or inner.output:
                    _strip(inner, names)
    del graph.metadata_props[:]
