"""Dead code elimination: nodes, optional outputs and initializers without a reader."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import common

from burnish.codegen.account import Account
from burnish.codegen.passes import graph as g


def drop_dead(model: ir.Model, account: Account) -> bool:
    """Inputs and outputs of the model stay, even unused ones."""
    for value in model.graph.inputs:
        if not value.uses() and not value.is_graph_output():
            account.left("unused input", value.name or "", "it stays an argument")
    nodes, weights = g.all_nodes(model), set(model.graph.initializers)
    changed = bool(common.RemoveUnusedNodesPass()(model).modified)
    for node in nodes if changed else ():
        if node.graph is None:
            account.did("unused node", g.label(node))
    for name in sorted(weights - model.graph.initializers.keys()):
        account.did("unused weight", name)
    return changed
