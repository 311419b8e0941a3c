"""Resize by height and width alone: batch and channels keep their sizes.

`F.interpolate(x, size=...)` names height and width alone; exporters of opset 17 and
below join them with `x.shape[:2]`.
"""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.ops.shapes.dims import Sizes, declared, numbers
from burnish.codegen.passes import graph as g

_NAMED_AXES = 18  # the opset since which Resize takes axes
_RANKS = range(3, 6)  # signals, images, volumes
_CROPS = "tf_crop_and_resize"


def spatial_sizes(model: ir.Model, account: Account) -> bool:
    """Name the axes of every Resize by sizes that leaves batch and channels alone."""
    rewrites = {"sizes without those of batch and channels": _named_axes}
    return g.rewrite_nodes(model, account, rewrites, "Resize")


def _resized(node: ir.Node) -> Sizes | None:
    """What height, width ... become, where batch and channels are known to stay."""
    if len(node.inputs) < 4 or node.inputs[3] is None or "axes" in node.attributes:
        return None
    if g.attribute(node, "coordinate_transformation_mode", "half_pixel") == _CROPS:
        return None  # its region has numbers for all axes
    before, after = declared(node.inputs[0]), declared(node.outputs[0])
    if before is None or after is None or len(before) != len(after):
        return None
    stay = len(after) in _RANKS and None not in before[:2] and before[:2] == after[:2]
    return after[2:] if stay else None


def _named_axes(_model: ir.Model, node: ir.Node) -> bool:
    sizes = _resized(node)
    if sizes is None:
        return False
    known = numbers(sizes)
    if known is not None:
        made = [g.constant_node(known)]
    else:
        ends = [g.constant_node([n]) for n in (2, 2 + len(sizes), 0)]
        inputs = [node.inputs[3], *(end.outputs[0] for end in ends)]
        made = [*ends, ir.Node("", "Slice", inputs)]
    g.owner(node).insert_before(node, made)
    node.replace_input_with(3, made[-1].outputs[0])
    node.attributes["axes"] = ir.AttrInt64s("axes", range(2, 2 + len(sizes)))
    node.version = _NAMED_AXES
    return True
