"""Merge consecutive recurrent layers to one of several layers; set `batch_first`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.ops.quantized.quantize import ON_INPUT
from burnish.codegen.ops.shapes.dims import declared
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.recurrent.layer import (
    SWAP,
    as_layer,
    instead,
    perm,
    recurrent,
    start_from_nothing,
    swapped,
)
from burnish.codegen.scopes import scope_of
from burnish.codegen.symbolic.sizes import parse


def stack_recurrent(model: ir.Model, account: Account) -> bool:
    """Rewrite every node that is one of PyTorch's layers, or several of them."""
    changed = False
    for node in g.all_nodes(model):
        if start_from_nothing(node):
            account.did("states of zeros, which are the default", g.label(node))
            changed = True
        if as_layer(model, node):
            account.did("recurrent layer as PyTorch has it", g.label(node))
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
    if not _is_layer(node) or _follows(node):
        return 0
    layers = [node]
    while (following := _following(layers[-1])) is not None:
        layers.append(following)
    if len(layers) == 1:
        return 1
    last = layers[-1]
    weights = [v for layer in layers for v in _weights(layer)]
    states = [
        _joined(last, [_states(layer)[i] for layer in layers])
        for i in range(len(_states(node)))
    ]
    attributes = {**_options(node), "layers": sum(map(_depth, layers))}
    made = recurrent(last, [node.inputs[0], *weights, *states], attributes)
    instead(last.outputs[0], made.outputs[0])
    counts = [_depth(layer) * _directions(layer) for layer in layers]
    for place in range(1, len(made.outputs)):
        whole, parts = made.outputs[place], [each.outputs[place] for each in layers]
        if whole.shape is not None:
            whole.shape = ir.Shape([sum(counts), *whole.shape[1:]])
        _part_states(model, parts, whole, counts)
    graph = g.owner(last)
    for layer in reversed(layers):
        graph.remove(layer, safe=True)
    graph.sort()
    return len(layers)


def _is_layer(node: ir.Node) -> bool:
    return node.domain == "burnish" and node.op_type == "Recurrent"


def _follows(node: ir.Node) -> bool:
    """Whether it is the second of two layers that are one."""
    below = g.maker_of(node.inputs[0])
    return below is not None and _is_layer(below) and _following(below) is node


def _following(node: ir.Node) -> ir.Node | None:
    """The layer that alone reads all that this one makes, where both are alike.

    Two that are of different modules, as their scopes say, stay apart.
    """
    uses = list(node.outputs[0].uses())
    if len(uses) != 1 or node.outputs[0].is_graph_output():
        return None
    above, place = uses[0]
    alike = (
        place == 0
        and _is_layer(above)
        and above.graph is node.graph
        and scope_of(above) == scope_of(node)
        and above.metadata_props.get(ON_INPUT) == node.metadata_props.get(ON_INPUT)
        and not any(g.attribute(n, "batch_first", 0) for n in (node, above))
        and _options(node) == _options(above)
        and len(_states(node)) == len(_states(above))
        and _hidden(node) is not None
        and _hidden(node) == _hidden(above)
    )
    return above if alike else None


def _options(node: ir.Node) -> dict[str, Any]:
    return {name: a.value for name, a in node.attributes.items() if name != "layers"}


def _depth(node: ir.Node) -> int:
    return node.attributes.get_int("layers", 1)


def _directions(node: ir.Node) -> int:
    return node.attributes.get_int("directions", 1)


def _weights(node: ir.Node) -> Sequence[ir.Value | None]:
    held = node.attributes
    each = 2 + held.get_int("bias", 1) + held.get_int("peepholes", 0)
    return node.inputs[1 : 1 + _depth(node) * each]


def _states(node: ir.Node) -> Sequence[ir.Value | None]:
    return node.inputs[1 + len(_weights(node)) :]


def _hidden(node: ir.Node) -> int | None:
    dims = g.static_dims(node.inputs[2])
    return None if dims is None else dims[-1]


def _joined(before: ir.Node, parts: Sequence[ir.Value | None]) -> ir.Value:
    """The states of all layers: the tensor they were sliced from, or a Concat."""
    cuts = [_cut(part) for part in parts]
    whole = cuts[0][0] if cuts[0] else None
    stop = 0
    for cut in cuts:
        if cut is None or cut[0] is not whole or cut[1] != stop:
            whole = None
            break
        stop = cut[2]
    dims = declared(whole)
    if whole is not None and dims and dims[0] == parse(stop):
        return whole
    made = ir.node("Concat", parts, {"axis": 0}, name=before.name)
    g.owner(before).insert_before(before, made)
    made.outputs[0].type = parts[0].type if parts[0] is not None else None
    return made.outputs[0]


def _cut(value: ir.Value | None) -> tuple[ir.Value, int, int] | None:
    """The value that another is a slice of along the first axis, with start and end."""
    maker = g.maker_of(value, "Slice")
    if maker is None or len(maker.inputs) < 4:
        return None
    starts, stops, axes = (g.integers(v) for v in maker.inputs[1:4])
    steps = g.integers(maker.inputs[4]) if len(maker.inputs) > 4 else [1]
    whole, dims = maker.inputs[0], declared(value)
    if whole is None or axes != [0] or steps != [1] or not starts or not stops:
        return None
    count = None if not dims or dims[0] is None else dims[0].value
    return None if count is None else (whole, starts[0], starts[0] + count)


def _part_states(
    model: ir.Model, parts: list[ir.Value], whole: ir.Value, counts: list[int]
) -> None:
    """The last states of each layer are so many of those of all."""
    joins = {user for part in parts for user, _ in part.uses()}
    join = next(iter(joins)) if len(joins) == 1 else None
    outputs = any(part.is_graph_output() for part in parts)
    if join is not None and join.op_type == "Concat" and not outputs:
        along = g.attribute(join, "axis", 0)
        if along == 0 and list(join.inputs) == parts:
            whole.type, whole.shape = join.outputs[0].type, join.outputs[0].shape
            instead(join.outputs[0], whole)
            g.owner(join).remove(join, safe=True)
            return
    if not joins and not outputs:
        return
    made = whole.producer()
    assert made is not None
    sizes = g.initializer(model, whole, ir.tensor(counts, ir.DataType.INT64), False)
    split = ir.node(
        *("Split", [whole, sizes], {"axis": 0}),
        num_outputs=len(parts),
        version=18,
        name=made.name,
    )
    for part, new in zip(parts, split.outputs, strict=True):
        new.type, new.shape = part.type, part.shape
        instead(part, new)
    g.owner(made).insert_after(made, split)


# --- batch first ---


def _with_batch_first(node: ir.Node) -> bool:
    """Take the swaps of time and batch before and behind layers in a row into them."""
    if not _is_layer(node) or g.attribute(node, "batch_first", 0):
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
        if place != 0 or not _is_layer(above) or above.graph is not node.graph:
            return row
        row.append(above)
