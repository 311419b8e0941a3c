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
        for graph in model.graphs()
        for node in graph
        if node.op_type == "Scan" and node.domain == "" and declared < 9
    ]
    for node in found:
        where = f"node {node.name!r} (Scan, opset {declared})"
        if node.inputs[0] is not None:
            raise UnsupportedError(f"{where}: expected no sequence_lens, got some")
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
    given = node.inputs[1:]
    parts = [ir.Value(name=f"{v.name}_of_one") for v in body.inputs]
    results = [ir.Value(name=f"{v.name}_of_one") for v in body.outputs]
    attributes: dict[str, Any] = {"num_scan_inputs": scanned}
    backwards = node.attributes.get("directions")
    if backwards is not None:
        attributes["scan_input_directions"] = backwards.as_ints()
    node.attributes.clear()
    inner = ir.node("Scan", parts, {"body": body, **attributes}, outputs=results)
    one = ir.Graph(parts, results, nodes=[inner], name=f"{body.name}_of_one")
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
