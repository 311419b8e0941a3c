"""Inline the branch of an If whose condition is constant."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import common

from burnish.codegen.account import Account
from burnish.codegen.passes.graph import all_nodes, label, let_go, owner, scalar


def inline_constant_if(model: ir.Model, account: Account) -> bool:
    """Move the taken branch's nodes to where the If stood."""
    changed = False
    for node in all_nodes(model):
        if node.op_type != "If" or node.domain != "" or node.graph is None:
            continue
        condition = scalar(node.inputs[0])
        if condition is None:
            continue
        names = ("then_branch", "else_branch")
        taken, other = names if condition else names[::-1]
        _inline(node, node.attributes[taken].as_graph())
        let_go(node.attributes[other].as_graph().all_nodes())
        account.did(f"If whose condition is constant: {taken}", label(node))
        changed = True
    if changed:
        common.NameFixPass()(model)
    return changed


def _inline(node: ir.Node, branch: ir.Graph) -> None:
    graph = owner(node)
    results = list(branch.outputs)
    branch.outputs.clear()
    nodes = list(branch)
    branch.remove(nodes)
    # an Identity for each result keeps the names of outputs; drop_identities follows
    ends = [
        ir.Node("", "Identity", [value], name=f"{node.name}_{index}")
        for index, value in enumerate(results)
    ]
    graph.insert_before(node, nodes)
    ir.convenience.replace_nodes_and_values(
        graph, node, [node], ends, node.outputs, [end.outputs[0] for end in ends]
    )
