"""Convert Scan of opset 8, which is batched, to that of opset 9.

The operator is hidden from the converter, and comes back as two scans: over the batch,
and inside it over the sequence.
"""

from __future__ import annotations

from typing import Any

import onnx
import onnx_ir as ir

from burnish.codegen.errors import UnsupportedError

_DOMAIN, _HIDDEN = "burnish.hidden", "BatchedScan"


def hide(model: ir.Model, declared: int, target: int) -> None:
    """Give every Scan another name, where it means the old one."""
    found = [
        node
        for node in model.graph.all_nodes()
        if node.op_type == "Scan" and node.domain == "" and declared < 9
    ]
    for node in found:
        where = f"node {node.name!r} (Scan, opset {declared})"
        for inner in node.attributes["body"].as_graph():
            if not _unchanged(inner.op_type, declared, target):
                raise UnsupportedError(
                    f"{where}: expected a body of operators that opset {target} has "
                    f"unchanged, got {inner.op_type}; export the model with opset 9 or "
                    f"newer"
                )
        node.domain, node.op_type = _DOMAIN, _HIDDEN
    if found:
        model.opset_imports[_DOMAIN] = 1


def restore(model: ir.Model) -> None:
    """Write the hidden ones as scans of today."""
    for graph in list(model.graphs()):
        for node in list(graph):
            if node.domain == _DOMAIN:
                _nest(node)
    model.opset_imports.pop(_DOMAIN, None)


def _unchanged(op_type: str, declared: int, target: int) -> bool:
    old, new = (onnx.defs.get_schema(op_type, v) for v in (declared, target))
    return {*old.attributes} == {*new.attributes} and [i.name for i in old.inputs] == [
        i.name for i in new.inputs
    ]


def _nest(node: ir.Node) -> None:
    body = node.attributes["body"].as_graph()
    scanned = node.attributes["num_scan_inputs"].as_int()
    lengths, *given = node.inputs
    parts = [ir.Value(name=f"{v.name}_of_one") for v in body.inputs]
    results = [ir.Value(name=f"{v.name}_of_one") for v in body.outputs]
    attributes: dict[str, Any] = {"num_scan_inputs": scanned}
    backwards = node.attributes.get("directions")
    if backwards is not None:
        attributes["scan_input_directions"] = backwards.as_ints()
    node.attributes.clear()
    attributes["body"] = body
    if lengths is None:
        nodes = [ir.node("Scan", parts, attributes, outputs=results)]
    else:
        given.insert(0, lengths)
        length = ir.Value(name=f"{body.name}_length")
        nodes, results = _shortened(parts, length, attributes, results)
        parts.insert(0, length)
    one = ir.Graph(parts, results, nodes=nodes, name=f"{body.name}_of_one")
    count: dict[str, Any] = {"body": one, "num_scan_inputs": len(given)}
    outer = ir.node("Scan", given, count, num_outputs=len(node.outputs), name=node.name)
    for old, new in zip(node.outputs, outer.outputs, strict=True):
        new.name, new.shape, new.type = old.name, old.shape, old.type
        old.name = None
    graph = node.graph
    assert graph is not None
    graph.insert_before(node, outer)
    ir.convenience.replace_all_uses_with(
        node.outputs, outer.outputs, replace_graph_outputs=True
    )
    graph.remove(node, safe=True)


def _shortened(
    parts: list[ir.Value],
    length: ir.Value,
    attributes: dict[str, Any],
    results: list[ir.Value],
) -> tuple[list[ir.Node], list[ir.Value]]:
    """A scan over the first `length` (a scalar) steps, and its results.

    What is stacked has zeros for the steps that are left out.
    """
    nodes: list[ir.Node] = []

    def add(op_type: str, inputs: list[ir.Value], **options: Any) -> ir.Value:
        made = ir.node(op_type, inputs, options)
        made.outputs[0].name = f"{length.name}_{len(nodes)}"
        nodes.append(made)
        return made.outputs[0]

    states = len(parts) - attributes["num_scan_inputs"]
    first = add("Constant", [], value_ints=[0])
    end = add("Reshape", [length, add("Constant", [], value_ints=[1])])
    kept = [add("Slice", [part, first, end, first]) for part in parts[states:]]
    nodes.append(ir.node("Scan", [*parts[:states], *kept], attributes, outputs=results))
    left = add("Sub", [add("Shape", [parts[states]], start=0, end=1), end])
    zero = add("Constant", [], value_float=0.0)
    padded = []
    for stacked in results[states:]:
        shape = add("Concat", [left, add("Shape", [stacked], start=1)], axis=0)
        zeros = add("Expand", [add("CastLike", [zero, stacked]), shape])
        padded.append(add("Concat", [stacked, zeros], axis=0))
    return nodes, [*results[:states], *padded]
