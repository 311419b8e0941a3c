"""Parts of Recurrent nodes that are merged: their weights, options and states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from burnish.codegen.ops.quantized.quantize import ON_INPUT
from burnish.codegen.ops.shapes.dims import declared
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.recurrent.layer import instead
from burnish.codegen.scopes import scope_of
from burnish.codegen.symbolic.sizes import parse


def is_layer(node: ir.Node) -> bool:
    return node.domain == "burnish" and node.op_type == "Recurrent"


def options_of(node: ir.Node) -> dict[str, Any]:
    return {name: a.value for name, a in node.attributes.items() if name != "layers"}


def depth_of(node: ir.Node) -> int:
    return node.attributes.get_int("layers", 1)


def directions_of(node: ir.Node) -> int:
    return node.attributes.get_int("directions", 1)


def weights_of(node: ir.Node) -> Sequence[ir.Value | None]:
    held = node.attributes
    each = 2 + held.get_int("bias", 1) + held.get_int("peepholes", 0)
    return node.inputs[1 : 1 + depth_of(node) * each]


def states_of(node: ir.Node) -> Sequence[ir.Value | None]:
    return node.inputs[1 + len(weights_of(node)) :]


def are_alike(node: ir.Node, other: ir.Node) -> bool:
    """Whether two layers may be one: by their options, and states given or not.

    Two that are of different modules, as their scopes say, stay apart, and so do two of
    which one starts from what the other ends with.
    """
    return (
        is_layer(other)
        and other.graph is node.graph
        and scope_of(other) == scope_of(node)
        and other.metadata_props.get(ON_INPUT) == node.metadata_props.get(ON_INPUT)
        and not any(g.attribute(n, "batch_first", 0) for n in (node, other))
        and options_of(node) == options_of(other)
        and len(states_of(node)) == len(states_of(other))
        and _hidden(node) is not None
        and _hidden(node) == _hidden(other)
        and not depend_on(states_of(node), other)
        and not depend_on(states_of(other), node)
    )


def depend_on(values: Sequence[ir.Value | None], node: ir.Node) -> bool:
    """Whether one of the values is computed from a node's results."""
    waiting, seen = [*values], set[ir.Node]()
    while waiting:
        value = waiting.pop()
        maker = None if value is None else value.producer()
        if maker is node:
            return True
        if maker is None or maker in seen:
            continue
        seen.add(maker)
        inside = [maker]
        for each in inside:
            waiting.extend(each.inputs)
            for body in g.bodies(each):
                waiting.extend(body.outputs)
                inside.extend(body)
    return False


def _hidden(node: ir.Node) -> int | None:
    dims = g.static_dims(node.inputs[2])
    return None if dims is None else dims[-1]


def joined_states(before: ir.Node, parts: Sequence[ir.Value | None]) -> ir.Value:
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
    cut, dims = g.cut_of(g.maker_of(value)), declared(value)
    count = None if not dims or dims[0] is None else dims[0].value
    if cut is None or cut[3:] != (0, 1) or count is None:
        return None
    return cut[0], cut[1], cut[1] + count


def part_states(
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
    made = g.unwrap(whole.producer())
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
