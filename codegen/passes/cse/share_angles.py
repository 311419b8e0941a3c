"""Compute cosines and sines of rotary positions once, beside their angles.

torch's exporter writes ONNX's RotaryEmbedding with a Cos and a Sin of its own before
each: once for the queries and once for the keys of every layer.
"""

from __future__ import annotations

from collections import defaultdict

import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.passes.graph import all_nodes, forward, label, owner
from burnish.codegen.scopes import scope_of


def share_angles(model: ir.Model, account: Account) -> bool:
    """Let every RotaryEmbedding of the same angles read the same Cos and Sin."""
    twins: dict[tuple[str, ir.Value], list[ir.Node]] = defaultdict(list)
    for node in all_nodes(model):
        angles = node.inputs[0] if node.inputs else None
        if node.op_type in ("Cos", "Sin") and not node.domain and angles is not None:
            maker = angles.producer()
            if maker is not None and maker.graph is node.graph and _turns(node):
                twins[node.op_type, angles].append(node)
    changed = False
    for (_, angles), (first, *others) in reversed(
        twins.items()
    ):  # the last moves first
        if not others:
            continue
        _move(first, angles)
        for node in others:
            changed |= forward(node, first.outputs[0])
            account.did("cosine or sine of the same angles", label(node))
    return changed


def _turns(node: ir.Node) -> bool:
    """Whether nothing but rotary positions reads it."""
    uses = list(node.outputs[0].uses())
    turned = all(
        user.op_type == "RotaryEmbedding" and index in (1, 2) for user, index in uses
    )
    return bool(uses) and turned and not node.outputs[0].is_graph_output()


def _move(node: ir.Node, angles: ir.Value) -> None:
    """Put it behind what makes the angles, in the module that makes them."""
    maker = angles.producer()
    assert maker is not None
    graph = owner(node)
    graph.remove(node)
    graph.insert_after(maker, node)
    if scope_of(node) != scope_of(maker):
        node.metadata_props.clear()
        node.metadata_props.update(maker.metadata_props)
        if maker.name:
            node.name = f"{maker.name}_{node.op_type}"
