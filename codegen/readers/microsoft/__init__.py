"""onnxruntime's own operators, replaced by ONNX's that mean the same.

In: nodes of com.microsoft, as onnxruntime's optimisers and Olive write them. Out: nodes
of ONNX, or Burnish's of a known form.
Invariant: a body's signature is the operator's schema; the numbers stay.
"""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import common

from burnish.codegen.account import Account
from burnish.codegen.errors import WHY_NOT, Explain
from burnish.codegen.ops import find
from burnish.codegen.readers.microsoft import (
    activations,
    decoding,
    embedded,
    experts,
    images,
    integers,
    legacy,
    lowbit,
    nchwc,
    norms,
    others,
    products,
    quantized,
    states,
    tokens,
    windows,
)
from burnish.codegen.readers.microsoft.attention import grouped, multihead, rotary
from burnish.codegen.readers.microsoft.shared.bodies import (
    DOMAIN,
    Shared,
    Unreadable,
    bodies,
    body_of,
    written,
)
from burnish.codegen.readers.normal import lift_constants
from burnish.codegen.readers.sizes import shapes
from burnish.codegen.weights.lost_scopes import settle

__all__ = ["CHANGED", "DOMAIN", "FAMILIES", "bodies", "expand", "to_own_domain"]

FAMILIES = (
    *(activations, norms, products, multihead, grouped, experts),
    *(rotary, states, lowbit, tokens, quantized, integers, images),
    *(windows, decoding, embedded, others, legacy),
)

_STRAYS = legacy.WITHDRAWN | {"SimplifiedLayerNormalization"}
CHANGED = {"MeanVarianceNormalization": 9}
"""Operators that said something else in opsets before these."""

_ROUNDS = 8


def to_own_domain(model: ir.Model) -> ir.Model:
    """Operators that onnxruntime has in ONNX's domain, which has none of them."""
    opset = model.opset_imports.get("", 1)
    for node in model.graph.all_nodes():
        if node.domain:
            continue
        if node.op_type in _STRAYS or opset < CHANGED.get(node.op_type, 0):
            node.domain = DOMAIN
            model.opset_imports.setdefault(DOMAIN, 1)
    return model


def expand(model: ir.Model, explain: Explain) -> None:
    """Replace every operator of onnxruntime's that can be read.

    The nodes inherit its name and metadata. One that stays carries the reason. What
    needs an axis count that is not known yet waits for the shapes of the others.
    """
    account = Account()
    groups: list[list[ir.Node]] = []
    shared: Shared = {}
    for _ in range(_ROUNDS):
        if not _once(model, account, groups, shared, explain):
            break
    settle(model, groups)
    for line in account.lines({}):
        explain(line)


def _once(
    model: ir.Model,
    account: Account,
    groups: list[list[ir.Node]],
    shared: Shared,
    explain: Explain,
) -> bool:
    changed = False
    for graph in model.graphs():
        for node in list(graph):
            if not node.domain.startswith(DOMAIN) or _is_taught(node):
                continue
            try:
                groups.append(_replace(model, node, shared, explain))
            except Unreadable as reason:
                node.metadata_props[WHY_NOT] = str(reason)
            else:
                account.did(f"{node.op_type} of onnxruntime read", node.name or "")
                changed = True
    if changed:
        common.NameFixPass()(model)
        lift_constants(model)
        shapes.infer(model, explain)
    return changed


def _block_size(model: ir.Model) -> int | None:
    """Channels in a block; asked of the model before its convolutions are read."""
    if nchwc.LAYOUTS not in model.meta:
        model.meta[nchwc.LAYOUTS] = nchwc.block_size(nchwc.convolutions(model))
    found: int | None = model.meta[nchwc.LAYOUTS]
    return found


def _is_taught(node: ir.Node) -> bool:
    """Whether a user's rule says what the operator means."""
    return find(node.domain, node.op_type, node.version or 1) is not None


def _replace(
    model: ir.Model, node: ir.Node, shared: Shared, explain: Explain
) -> list[ir.Node]:
    """The nodes that take its place."""
    opset = model.opset_imports.get("", 1)
    if node.domain == nchwc.LAYOUTS:
        block = _block_size(model)
        found = written(node, opset, shared, lambda op: nchwc.body(op, node, block))
        nodes, results, notes = found
    else:
        nodes, results, notes = body_of(node, opset, shared)
    for each in nodes:
        each.name = node.name
        each.metadata_props.update(node.metadata_props)
        if each.domain:
            model.opset_imports.setdefault(each.domain, 1)
    for note in notes:
        explain(f"{node.op_type} {node.name!r}: {note}")
    old = [output for output, new in zip(node.outputs, results, strict=True) if new]
    graph = node.graph
    assert isinstance(graph, ir.Graph)
    ir.convenience.replace_nodes_and_values(
        graph, node, [node], nodes, old, [new for new in results if new is not None]
    )
    return [each for each in nodes if each.op_type != "Constant"]
