"""Infer which modules are PyTorch layers, in the order of the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from burnish.codegen.infer.layers import convs, norms, recurrent
from burnish.codegen.infer.layers.chaining import turned
from burnish.codegen.infer.layers.leaves import (
    Around,
    Doubt,
    Facts,
    Leaf,
    dense,
    is_float,
    shape,
)
from burnish.codegen.infer.tree import Node

Rule = Callable[[Node, Around], Leaf | None]

_RECURRENT = (
    *("weight_ih_l", "weight_hh_l", "weight_hr_l", "bias_ih_l", "bias_hh_l"),
    "peephole_l",
)
_CELL = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"}
_BATCH = {"weight", "bias", "running_mean", "running_var", "num_batches_tracked"}
_ATTENTION = {
    "in_proj_weight",
    "in_proj_bias",
    "q_proj_weight",
    "k_proj_weight",
    "v_proj_weight",
    "bias_k",
    "bias_v",
}


def layers(root: Node, doubt: Doubt) -> dict[Node, Leaf]:
    """Every node that is a layer, in the tree's order."""
    nodes = list(_tops(root))
    facts = _facts(nodes)
    backwards = turned([node for node, _ in nodes])
    found: dict[Node, Leaf] = {}
    before: Leaf | None = None
    last: Node | None = None
    fed: int | None = None
    widths: set[int] = set()
    for place, (node, chained) in enumerate(nodes):
        rule = _rule(node)
        if rule is None:
            continue
        after = nodes[place + 1][0] if place + 1 < len(nodes) else None
        around = node.path.rpartition(".")[0]
        beside = last is not None and last.path.rpartition(".")[0] == around
        context = Around(
            before,
            after,
            chained and beside,
            beside,
            fed,
            frozenset(widths),
            node in backwards,
            facts,
            doubt,
        )
        leaf = rule(node, context)
        if leaf is None:
            continue
        found[node] = leaf
        widths |= {w for w in (leaf.takes, leaf.gives) if w is not None}
        if leaf.gives is not None:
            before, last = leaf, node
            fed = fed if "Norm" in leaf.kind else leaf.takes
    return found


def _tops(root: Node, chained: bool = False) -> Iterator[tuple[Node, bool]]:
    """Nodes with tensors, and whether they are in a numbered run of layers."""
    if root.tensors:
        yield root, chained
        if _rule(root) is recurrent.attention:
            return
    for child in root.children.values():
        yield from _tops(child, root.is_numbered)


def _rule(node: Node) -> Rule | None:
    """Which kind of layer has tensors of these names and ranks."""
    names = set(node.tensors)
    if not names or not all(
        is_float(node, name) or name == "num_batches_tracked" for name in names
    ):
        return None
    if node.children:
        return recurrent.attention if names <= _ATTENTION else None
    if "weight_ih_l0" in names:
        rows = len(shape(node, "weight_ih_l0"))
        known = all(name.startswith(_RECURRENT) for name in names)
        return recurrent.recurrent if known and rows == 2 else None
    if {"weight_ih", "weight_hh"} <= names <= _CELL:
        return recurrent.cell if len(shape(node, "weight_ih")) == 2 else None
    if {"running_mean", "running_var"} <= names <= _BATCH:
        return norms.batch_norm
    if not {"weight"} <= names <= {"weight", "bias"}:
        return None
    size = shape(node, "weight")
    if not size or 0 in size:
        return None
    if names == {"weight", "bias"} and shape(node, "bias") == size:
        return norms.affine_norm
    if len(size) == 1:
        return norms.scale_only if names == {"weight"} else None
    if len(size) == 2:
        return dense
    return convs.convolution if len(size) <= 5 else None


def _facts(nodes: list[tuple[Node, bool]]) -> Facts:
    ranks: Counter[int] = Counter()
    turned = False
    for node, _ in nodes:
        size, bias = shape(node, "weight"), shape(node, "bias")
        if 3 <= len(size) <= 5:
            ranks[len(size) - 2] += 1
        if len(size) == 2 and len(bias) == 1 and bias[0] not in (size[0], 0):
            turned = turned or bias[0] == size[1]
    return Facts(max(ranks, key=lambda r: (ranks[r], r), default=0), turned)
