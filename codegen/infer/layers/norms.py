"""Infer normalization layers, and PReLU."""

from __future__ import annotations

import re
from math import gcd

from burnish.codegen.infer.layers.leaves import Around, Leaf, shape
from burnish.codegen.infer.tree import Node

_LAYER = re.compile(r"(^|_)ln|layer_?norm", re.IGNORECASE)
_GROUP = re.compile(r"(^|_)gn|group_?norm", re.IGNORECASE)
_INSTANCE = re.compile(r"(^|_)in(st)?\d*$|instance", re.IGNORECASE)
_ACTS = re.compile(r"act|prelu|relu|slope", re.IGNORECASE)
_GROUPS = 32

_RUNNING = ("running_mean", "running_var", "num_batches_tracked")


def batch_norm(node: Node, around: Around) -> Leaf | None:
    """BatchNorm by its running statistics, with a weight or without."""
    width = shape(node, "running_mean")
    names = [n for n in ("weight", "bias", "running_var") if n in node.tensors]
    if len(width) != 1 or any(shape(node, name) != width for name in names):
        return None
    instance = _INSTANCE.search(node.name) is not None
    options: dict[str, object] = {}
    if instance:
        options["track_running_stats"] = True
        if "weight" in names:
            options["affine"] = True
    elif "weight" not in names:
        options["affine"] = False
    if "weight" in names and "bias" not in names:
        options["bias"] = False
    missing = tuple(name for name in _RUNNING if name not in node.tensors)
    rank = _rank(width[0], around)
    kind = f"{'Instance' if instance else 'Batch'}Norm{rank or 1}d"
    return Leaf(kind, width, options, width[0], width[0], rank, missing)


def _rank(width: int, around: Around) -> int:
    """The rank of a norm's input: that of the convolution before, or the commonest."""
    before = around.before
    if before is not None and before.gives == width and before.rank is not None:
        return before.rank
    return around.facts.rank


def affine_norm(node: Node, around: Around) -> Leaf:
    """A weight and a bias of one shape: LayerNorm, GroupNorm or InstanceNorm."""
    size = shape(node, "weight")
    width = size[0] if len(size) == 1 else None
    if width is not None and not _LAYER.search(node.name):
        rank = _rank(width, around)
        if _INSTANCE.search(node.name):
            kind = f"InstanceNorm{rank or 1}d"
            return Leaf(kind, (width,), {"affine": True}, width, width, rank)
        before = around.before
        follows = before is not None and before.rank and before.gives == width
        if _GROUP.search(node.name) or follows:
            groups = gcd(_GROUPS, width)
            around.doubt(
                node.path,
                f"GroupNorm, of {groups} groups, by its name or a convolution before "
                f"it; LayerNorm and InstanceNorm have the same tensors",
            )
            return Leaf("GroupNorm", (groups, width), {}, width, width, rank)
    given = size[0] if len(size) == 1 else size
    return Leaf("LayerNorm", (given,), {}, width, width, 0 if width else None)


def scale_only(node: Node, around: Around) -> Leaf | None:
    """A weight alone of one axis: RMSNorm, or PReLU."""
    (width,) = shape(node, "weight")
    before = around.before
    behind_conv = before is not None and bool(before.rank) and before.gives == width
    unnamed = node.name.isdigit()
    if _ACTS.search(node.name) or (unnamed and (width == 1 or behind_conv)):
        args = () if width == 1 else (width,)
        features = None if width == 1 else width
        rank = before.rank if before is not None else None
        return Leaf("PReLU", args, {}, features, features, rank)
    around.doubt(node.path, "RMSNorm; LayerNorm without a bias has the same tensor")
    return Leaf("RMSNorm", (width,), {}, width, width, 0)
