"""Fuse GroupNormalization, which older opsets write as InstanceNormalization."""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import Dims, declared, numbers
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.layout.channel_axes import first, last
from burnish.codegen.passes.pattern import Any, Match, Rule, op
from burnish.codegen.passes.rules.norm import AFFINE, is_small, mean_axes

_GROUPS = op("Reshape", Any("x"), Any("groups"), name="groups")
_NORMAL = op("InstanceNormalization", _GROUPS, Any("one"), Any("zero"), name="main")
_BACK = op("Reshape", _NORMAL, Any("shape"), name="back")
_LAST = op("Reshape", AFFINE, Any("shape"), name="back")
_EACH = op("InstanceNormalization", Any("x"), Any("one"), Any("zero"), name="main")


def _check_last(found: Match) -> str | None:
    """The channels are last: (N, ..., G, C / G), with statistics for each n and g."""
    groups, back = g.maker_of(found["x"], "Reshape"), found.named["back"]
    before = None if groups is None else declared(groups.inputs[0])
    grouped, axes = declared(found["x"]), mean_axes(found)
    if not before or None in before or declared(back.outputs[0]) != before:
        return "the shapes are not known, or not those that came in"
    if grouped is None or grouped[:-2] != before[:-1] or len(before) < 2:
        return "the groups are not those of the last axis"
    rank = len(grouped)
    if axes != [axis for axis in range(1 - rank, 0) if axis != -2]:
        return "the means are not those of groups"
    wanted: list[int | None] = [1] * (rank - 2)
    wanted += [None if size is None else size.value for size in grouped[-2:]]
    if None in wanted or not is_small(found["eps"]):
        return "how many groups there are is not known, or epsilon is no small constant"
    for name in ("scale", "bias"):
        tensor = g.constant(found[name])
        shape = None if tensor is None else list(tensor.shape.numpy())
        if shape is None or [1] * (rank - len(shape)) + shape != wanted:
            return f"the {name} is no constant of one number a channel"
    return None


def _group_norm_last(found: Match) -> list[ir.Node]:
    groups = g.unwrap(g.maker_of(found["x"], "Reshape"))
    rank = len(declared(found["x"]) or ()) - 1
    turn, back = {"perm": first(rank)}, {"perm": last(rank)}
    made = [ir.node("Transpose", groups.inputs[:1], turn)] if rank > 2 else []
    inputs = [made[0].outputs[0] if made else groups.inputs[0]]
    for name in ("scale", "bias"):
        made += g.reshape_nodes(found[name], [-1])
        made[-1].outputs[0].name = found[name].name  # a weight, not counted
        inputs.append(made[-1].outputs[0])
    count = _groups(found["x"], -2)
    attributes = {"num_groups": count, "epsilon": found.number("eps")}
    made.append(ir.node("GroupNormalization", inputs, attributes))
    turned = [ir.node("Transpose", made[-1].outputs, back)] if rank > 2 else []
    return made + turned


def _groups(value: ir.Value, axis: int) -> int:
    """The size of an axis, which a check has found to be a number."""
    return g.unwrap(numbers((declared(value) or [])[axis:][:1]))[0]


def _check_each(found: Match) -> str | None:
    """As many groups as channels: Reshape then changes nothing, and is gone."""
    return _check_weights(found, declared(found["x"]))


def _check(found: Match) -> str | None:
    before, after = declared(found["x"]), declared(found.named["back"].outputs[0])
    grouped = declared(found.named["groups"].outputs[0])
    if before is None or after is None or grouped is None or None in before:
        return "the shapes are not known"
    apart = len(before) > 1 and len(grouped) > 2 and grouped[0] == before[0]
    if after != before or not apart:
        return "the result has other axes than what came in"
    if grouped[1] is None or grouped[1].value is None:
        return "how many groups there are is not known"
    return _check_weights(found, before)


def _check_weights(found: Match, dims: Dims | None) -> str | None:
    channels = dims[1] if dims is not None and len(dims) > 1 else None
    if dims is None or channels is None or channels.value is None:
        return "how many channels there are is not known"
    if not _filled(found["one"], 1) or not _filled(found["zero"], 0):
        return "the groups are scaled apart"
    for name in ("scale", "bias"):
        tensor = g.constant(found[name])
        shape = None if tensor is None else tuple(tensor.shape.numpy())
        wanted = (channels.value, *[1] * (len(dims) - 2))
        if shape not in (wanted, (1, *wanted)):
            return f"the {name} is no constant of one number a channel"
    return None


def _filled(value: ir.Value, number: float) -> bool:
    tensor = g.constant(value)
    return tensor is not None and bool((tensor.numpy() == number).all())


def _group_norm(found: Match) -> list[ir.Node]:
    nodes: list[ir.Node] = []
    inputs = [found["x"]]
    for name in ("scale", "bias"):
        nodes += g.reshape_nodes(found[name], [-1])
        inputs.append(nodes[-1].outputs[0])
        inputs[-1].name = f"{found.named['main'].name}/{name}"  # a weight, not counted
    groups = found.named.get("groups")
    count = _groups(found["x"] if groups is None else groups.outputs[0], 1)
    epsilon = found.named["main"].attributes.get_float("epsilon", 1e-5)
    attributes = {"num_groups": count, "epsilon": epsilon}
    return [*nodes, ir.node("GroupNormalization", inputs, attributes)]


RULES = (
    Rule("GroupNormalization with channels last", _LAST, _check_last, _group_norm_last),
    Rule("GroupNormalization", _BACK * Any("scale") + Any("bias"), _check, _group_norm),
    Rule(
        "GroupNormalization of single channels",
        _EACH * Any("scale") + Any("bias"),
        _check_each,
        _group_norm,
    ),
)
