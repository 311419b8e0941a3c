"""Fuse GroupNormalization, which older opsets write as InstanceNormalization."""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import Dims, declared, numbers
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.layout.channel_axes import first, last
from burnish.codegen.passes.pattern import Any, Match, Rewritten, Rule, op
from burnish.codegen.passes.rules.norm import AFFINE, is_small, mean_axes

_GROUPS = op("Reshape", Any("x"), Any("groups"), name="groups")
_NORMAL = op("InstanceNormalization", _GROUPS, Any("one"), Any("zero"), name="main")
_BACK = op("Reshape", _NORMAL, Any("shape"), name="back")
_LAST = op("Reshape", AFFINE, Any("shape"), name="back")
_EACH = op("InstanceNormalization", Any("x"), Any("one"), Any("zero"), name="main")


def _group_norm_last(found: Match) -> Rewritten:
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
    x, rank = g.unwrap(groups).inputs[0], rank - 1
    turn, again = {"perm": first(rank)}, {"perm": last(rank)}
    made = [ir.node("Transpose", [x], turn)] if rank > 2 else []
    inputs = [made[0].outputs[0] if made else x]
    for name in ("scale", "bias"):
        made += g.reshape_nodes(found[name], [-1])
        made[-1].outputs[0].name = found[name].name  # a weight, not counted
        inputs.append(made[-1].outputs[0])
    count = _groups(found["x"], -2)
    attributes = {"num_groups": count, "epsilon": found.number("eps")}
    made.append(ir.node("GroupNormalization", inputs, attributes))
    turned = [ir.node("Transpose", made[-1].outputs, again)] if rank > 2 else []
    return made + turned


def _groups(value: ir.Value, axis: int) -> int:
    """The size of an axis, which a check has found to be a number."""
    return g.unwrap(numbers((declared(value) or [])[axis:][:1]))[0]


def _group_norm(found: Match) -> Rewritten:
    before, after = declared(found["x"]), declared(found.named["back"].outputs[0])
    grouped = declared(found.named["groups"].outputs[0])
    if before is None or after is None or grouped is None or None in before:
        return "the shapes are not known"
    apart = len(before) > 1 and len(grouped) > 2 and grouped[0] == before[0]
    if after != before or not apart:
        return "the result has other axes than what came in"
    if grouped[1] is None or grouped[1].value is None:
        return "how many groups there are is not known"
    return _normalized(found, found.named["groups"].outputs[0], before)


def _of_single_channels(found: Match) -> Rewritten:
    """As many groups as channels: Reshape then changes nothing, and is gone."""
    return _normalized(found, found["x"], declared(found["x"]))


def _normalized(found: Match, groups: ir.Value, dims: Dims | None) -> Rewritten:
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
    nodes: list[ir.Node] = []
    inputs = [found["x"]]
    for name in ("scale", "bias"):
        nodes += g.reshape_nodes(found[name], [-1])
        inputs.append(nodes[-1].outputs[0])
        inputs[-1].name = f"{found.named['main'].name}/{name}"  # a weight, not counted
    epsilon = found.named["main"].attributes.get_float("epsilon", 1e-5)
    attributes = {"num_groups": _groups(groups, 1), "epsilon": epsilon}
    return [*nodes, ir.node("GroupNormalization", inputs, attributes)]


def _filled(value: ir.Value, number: float) -> bool:
    tensor = g.constant(value)
    return tensor is not None and bool((tensor.numpy() == number).all())


_AFFINE = _BACK * Any("scale") + Any("bias")
_SINGLE = _EACH * Any("scale") + Any("bias")
RULES = (
    Rule("GroupNormalization with channels last", _LAST, _group_norm_last),
    Rule("GroupNormalization", _AFFINE, _group_norm),
    Rule("GroupNormalization of single channels", _SINGLE, _of_single_channels),
)
