"""Merge consecutive recurrent layers to one of several layers; set `batch_first`."""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.recurrent.directions import merge_directions
from burnish.codegen.passes.recurrent.each_direction import join_directions
from burnish.codegen.passes.recurrent.layer import (
    STATES,
    SWAP,
    as_layer,
    instead,
    perm,
    recurrent,
    start_from_nothing,
    swapped,
)
from burnish.codegen.passes.recurrent.parts import (
    are_alike,
    depend_on,
    depth_of,
    directions_of,
    is_layer,
    joined_states,
    options_of,
    part_states,
    states_of,
    weights_of,
)

_REWRITES = {
    "states of zeros, which are the default": start_from_nothing,
    "both directions of a layer": join_directions,
    "recurrent layer as PyTorch has it": as_layer,
}


def stack_recurrent(model: ir.Model, account: Account) -> bool:
    """Rewrite every node that is one of PyTorch's layers, or several of them."""
    changed = g.rewrite_nodes(model, account, _REWRITES, *STATES)
    for node in merge_directions(model, g.all_nodes(model)):
        account.did("recurrent layers of two directions", g.label(node))
        changed = True
    for node in g.all_nodes(model):
        if node.graph is not None and (count := _stacked(model, node)) > 1:
            account.did(f"{count} recurrent layers in a row", g.label(node))
            changed = True
    for node in g.all_nodes(model):
        if node.graph is not None and _with_batch_first(node):
            account.did("recurrent layer with batch first", g.label(node))
            changed = True
    if changed:
        model.opset_imports.setdefault("burnish", 1)
    return changed


# --- several nodes ---


def _stacked(model: ir.Model, node: ir.Node) -> int:
    """Replace the row of layers from `node` on by one node; their count."""
    if not is_layer(node) or _follows(node):
        return 0
    layers = [node]
    while (following := _following(layers[-1])) is not None:
        if any(depend_on(states_of(following), layer) for layer in layers):
            break
        layers.append(following)
    if len(layers) == 1:
        return 1
    last = layers[-1]
    weights = [v for layer in layers for v in weights_of(layer)]
    states = [
        joined_states(last, [states_of(layer)[i] for layer in layers])
        for i in range(len(states_of(node)))
    ]
    attributes = {**options_of(node), "layers": sum(map(depth_of, layers))}
    made = recurrent(last, [node.inputs[0], *weights, *states], attributes)
    instead(last.outputs[0], made.outputs[0])
    counts = [depth_of(layer) * directions_of(layer) for layer in layers]
    for place in range(1, len(made.outputs)):
        whole, parts = made.outputs[place], [each.outputs[place] for each in layers]
        if whole.shape is not None:
            whole.shape = ir.Shape([sum(counts), *whole.shape[1:]])
        part_states(model, parts, whole, counts)
    graph = g.owner(last)
    for layer in reversed(layers):
        graph.remove(layer, safe=True)
    graph.sort()
    return len(layers)


def _follows(node: ir.Node) -> bool:
    """Whether it is the second of two layers that are one."""
    below = g.maker_of(node.inputs[0])
    return below is not None and is_layer(below) and _following(below) is node


def _following(node: ir.Node) -> ir.Node | None:
    """The layer that alone reads all that this one makes, where both are alike."""
    uses = list(node.outputs[0].uses())
    if len(uses) != 1 or node.outputs[0].is_graph_output():
        return None
    above, place = uses[0]
    return above if place == 0 and are_alike(node, above) else None


# --- batch first ---


def _with_batch_first(node: ir.Node) -> bool:
    """Take the swaps of time and batch before and behind layers in a row into them."""
    if not is_layer(node) or g.attribute(node, "batch_first", 0):
        return False
    row, before = _row(node), g.maker_of(node.inputs[0])
    y = row[-1].outputs[0]
    behind = [user for user, _ in y.uses()]
    if y.is_graph_output() or perm(before) != SWAP or before is None:
        return False
    if not all(perm(user) == SWAP for user in behind):
        return False
    if sum(user.outputs[0].is_graph_output() for user in behind) > 1:
        return False
    node.replace_input_with(0, before.inputs[0])
    for layer in row:
        layer.attributes.add(ir.AttrInt64("batch_first", 1))
        layer.outputs[0].shape = swapped(layer.outputs[0].shape)
    for user in behind:
        instead(user.outputs[0], y)
        g.owner(user).remove(user, safe=True)
    return True


def _row(node: ir.Node) -> list[ir.Node]:
    """The layer and its successors, each the only reader of the one before."""
    row = [node]
    while True:
        y = row[-1].outputs[0]
        uses = list(y.uses())
        if len(uses) != 1 or y.is_graph_output():
            return row
        above, place = uses[0]
        if place != 0 or not is_layer(above) or above.graph is not node.graph:
            return row
        row.append(above)
