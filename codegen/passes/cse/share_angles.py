"""Compute cosines and sines of rotary positions once, beside their angles.

torch's exporter writes ONNX's RotaryEmbedding with a Cos and a Sin of its own before
each: once for the queries and once for the keys of every layer.
"""

from __future__ import annotations

from collections import defaultdict

import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.passes import graph as g
from burnish.codegen.scopes import scope_of


def share_angles(model: ir.Model, account: Account) -> bool:
    """Let every RotaryEmbedding of the same angles read the same Cos and Sin."""
    twins: dict[tuple[str, ir.Value], list[ir.Node]] = defaultdict(list)
    for node in g.nodes_of(model, "Cos", "Sin"):
        angles = g.unwrap(node.inputs[0])
        maker = angles.producer()
        rotates = g.is_read_only_by(node, "RotaryEmbedding", 1, 2)
        if maker is not None and maker.graph is node.graph and rotates:
            twins[node.op_type, angles].append(node)
    changed = False
    for (_, angles), (first, *others) in reversed(
        twins.items()
    ):  # the last moves first
        if not others:
            continue
        _move(first, angles)
        for node in others:
            changed |= g.forward(node, first.outputs[0])
            account.did("cosine or sine of the same angles", g.label(node))
    return changed


def _move(node: ir.Node, angles: ir.Value) -> None:
    """Put it behind what makes the angles, in the module that makes them."""
    maker = g.unwrap(angles.producer())
    graph = g.owner(node)
    graph.remove(node)
    graph.insert_after(maker, node)
    if scope_of(node) != scope_of(maker):
        node.metadata_props.clear()
        node.metadata_props.update(maker.metadata_props)
        if maker.name:
            node.name = f"{maker.name}_{node.op_type}"
