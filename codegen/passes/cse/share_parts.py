"""Split a weight once where every step of an unrolled loop splits it again.

Keras' recurrent cells split their weights at each step. Each part is one weight, which
the steps share, only where one node makes it.
"""

from __future__ import annotations

from collections.abc import Hashable

import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.ops import Trait, having
from burnish.codegen.passes import graph as g
from burnish.codegen.scopes import scope_of
from burnish.codegen.weights import constants

_MOVES = having(Trait.VIEW | Trait.SELECTION) | {"Cast"}


def share_parts(model: ir.Model, account: Account) -> bool:
    """Let equal views and parts of one weight be read from the first of their nodes."""
    known: dict[Hashable, ir.Node] = {}
    parts: set[ir.Value] = set()
    changed = False
    for node in g.all_nodes(model):
        if node.op_type not in _MOVES or node.domain:
            continue
        if not _is_of_a_weight(node, parts):
            continue
        parts.update(node.outputs)
        first = known.setdefault(_key(node), node)
        if first is node or any(output.is_graph_output() for output in node.outputs):
            continue
        ir.convenience.replace_all_uses_with(node.outputs, first.outputs)
        g.owner(node).remove(node, safe=True)
        account.did("part of a weight that is taken already", g.label(node))
        changed = True
    return changed


def _is_of_a_weight(node: ir.Node, parts: set[ir.Value]) -> bool:
    """Whether it moves elements of one weight, or of such a part, to known places."""
    whole, *rest = node.inputs
    if whole is None or not (whole in parts or constants.trains(whole)):
        return False
    return all(value is None or g.integers(value) is not None for value in rest)


def _key(node: ir.Node) -> Hashable:
    """Equal for nodes of one module that take the same from the same value."""
    whole, *rest = node.inputs
    attributes = sorted((name, repr(a.value)) for name, a in node.attributes.items())
    places = [v and (g.static_dims(v), tuple(g.integers(v) or ())) for v in rest]
    return (
        *(id(whole), id(node.graph), scope_of(node), node.op_type, node.version),
        *(len(node.outputs), *attributes, *places),
    )
