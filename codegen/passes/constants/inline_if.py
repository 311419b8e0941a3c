"""Inline the branch of an If whose condition is constant."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import common

from burnish.codegen.account import Account
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.constants.fold_constants import can_run, results


def inline_constant_if(model: ir.Model, account: Account) -> bool:
    """Replace an If of a constant condition by the taken branch's nodes.

    The other branch may not fit the shapes that are known here, since it never runs.
    """
    choices = list(g.nodes_of(model, "If"))
    changed = False
    known = _known(model, choices)
    for node in choices:
        condition = known.get(node.inputs[0])
        if condition is None or condition.size != 1:
            continue
        names = ("then_branch", "else_branch")
        taken, other = names if condition.numpy().item() else names[::-1]
        _inline(node, node.attributes[taken].as_graph())
        g.detach_inputs(node.attributes[other].as_graph().all_nodes())
        account.did(f"If whose condition is constant: {taken}", g.label(node))
        changed = True
    if changed:
        common.NameFixPass()(model)
    return changed


def _known(
    model: ir.Model, choices: list[ir.Node]
) -> dict[ir.Value | None, ir.TensorProtocol]:
    """The constants among the conditions and among all that they are computed from."""
    known: dict[ir.Value | None, ir.TensorProtocol] = {}
    makers: set[ir.Node] = set()
    waiting = [node.inputs[0] for node in choices]
    while waiting:
        value = waiting.pop()
        tensor, maker = g.constant(value), g.maker_of(value)
        if tensor is not None:
            known[value] = tensor
        elif maker is not None and maker not in makers and can_run(maker):
            makers.add(maker)
            waiting += maker.inputs
    for node in g.all_nodes(model) if makers else ():
        if node in makers:
            inputs = [known.get(value) for value in node.inputs]
            made = results(model, node, inputs, Account())
            known.update(zip(node.outputs, made or (), strict=False))
    return known


def _inline(node: ir.Node, branch: ir.Graph) -> None:
    results = list(branch.outputs)
    branch.outputs.clear()
    nodes = list(branch)
    branch.remove(nodes)
    # an Identity for each result keeps the names of outputs; drop_identities follows
    ends = [
        ir.Node("", "Identity", [value], name=f"{node.name}_{index}")
        for index, value in enumerate(results)
    ]
    g.owner(node).insert_before(node, nodes)
    g.substitute(node, ends, [end.outputs[0] for end in ends])
