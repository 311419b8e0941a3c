"""Compute a mask once that several attentions derive from the same values.

A table of distances that is added to a mask is added in every layer again, as exporters
write it; the first sum is that of all.
"""

from __future__ import annotations

from collections.abc import Hashable

import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.passes import graph as g

_MADE = frozenset(("Add", "And", "Not", "Where"))


def share_masks(model: ir.Model, account: Account) -> bool:
    """Let attentions whose masks are the same sum or choice read the first of them."""
    known: dict[Hashable, ir.Node] = {}
    changed = False
    for node in g.nodes_of(model, *_MADE):
        if not g.is_read_only_by(node, "Attention", 3):
            continue
        inputs = list(node.inputs)
        if node.op_type in ("Add", "And"):
            inputs.sort(key=id)
        first = known.setdefault((node.op_type, id(node.graph), *map(id, inputs)), node)
        if first is not node and g.forward(node, first.outputs[0]):
            account.did("mask that is made already", g.label(node))
            changed = True
    return changed
