"""Compute a mask once that several attentions derive from the same values.

A table of distances that is added to a mask is added in every layer again, as exporters
write it; the first sum is that of all.
"""

from __future__ import annotations

from collections.abc import Hashable

import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.passes.graph import all_nodes, forward, label

_MADE = frozenset(("Add", "And", "Not", "Where"))


def share_masks(model: ir.Model, account: Account) -> bool:
    """Let attentions whose masks are the same sum or choice read the first of them."""
    known: dict[Hashable, ir.Node] = {}
    changed = False
    for node in all_nodes(model):
        if node.op_type not in _MADE or node.domain or not _masks_only(node):
            continue
        inputs = list(node.inputs)
        if node.op_type in ("Add", "And"):
            inputs.sort(key=id)
        first = known.setdefault((node.op_type, id(node.graph), *map(id, inputs)), node)
        if first is not node and forward(node, first.outputs[0]):
            account.did("mask that is made already", label(node))
            changed = True
    return changed


def _masks_only(node: ir.Node) -> bool:
    """Whether nothing but attentions reads it, as their mask."""
    uses = list(node.outputs[0].uses())
    masks = all(user.op_type == "Attention" and place == 3 for user, place in uses)
    return bool(uses) and masks and not node.outputs[0].is_graph_output()
