"""Lower ensembles of decision trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.ops.ml.trees import totals
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.table import lower, need
from burnish.plan.graph import Array, Constant, Node, Value, combined

_STEPS = 64
"""The cost of a walk down a tree, in operations."""

_KEYS = 1 << 15
"""Bytes of rows' keys that go through all trees at a time; caches hold them."""

_WALKS, _HEADER = 8, 64
"""Rows whose keys lie side by side, and bytes of a cache line, as in trees.c."""

_WIDEST = 32
"""Features for each tree: of wider rows, keys take longer than walks."""

_NODES = {
    size: np.dtype(
        [("key", f"i{size}"), ("feature", "u4"), ("next", "u4"), ("leaf", f"i{size}")]
    )
    for size in (4, 8)
}
"""Packed nodes by the bytes of a threshold, as trees.c has them."""

_LT, _GT = 1, 3
"""Modes: the last two of <=, <, >=, > ask for another order of the children."""

_NAMES = "roots features thresholds yes no targets weights modes missing members"


@lower("tree_ensemble")
def tree_ensemble(b: Builder, node: Node) -> None:
    """An index of a node or leaf out of range is a fault: the call runs eagerly."""
    x, *others = node.args
    held: dict[str, Any] = dict.fromkeys(_NAMES.split()) | dict(
        zip(_NAMES.split(), others, strict=False)
    )
    need(isinstance(x, Value) and len(x.shape) == 2 and x.size, "its rows")
    kinds = {x.dtype, held["thresholds"].dtype, held["weights"].dtype}
    one = kinds == {np.dtype(np.float32)} or kinds == {np.dtype(np.float64)}
    need(one, "its numbers are neither all float32 nor all float64")
    need(node.result.size, "it has no elements")
    need(held.pop("members") is None, "it asks for members of sets")
    known = all(isinstance(each, Constant | None) for each in held.values())
    need(known, "its trees are not known before")
    whole = all(
        held[n].dtype == np.int64 for n in ("roots", "features", "yes", "no", "targets")
    )
    need(whole, "its trees are not numbered in int64")
    shape = held["yes"].shape
    each = [held[n] for n in ("features", "thresholds", "no", "modes", "missing")]
    alike = all(part is None or part.shape == shape for part in each)
    need(alike and held["targets"].shape == held["weights"].shape, "its nodes' sizes")
    for name, kind in (("modes", np.uint8), ("missing", np.bool_)):
        part = held[name]
        need(part is None or part.dtype == kind, f"its {name} are no bytes")
    spots: dict[str, Any] = {
        name: None if made is None else b.constant(made) for name, made in held.items()
    }
    (rows, width), outputs = x.shape, node.options["outputs"]
    trees, nodes = held["roots"].shape[0], held["yes"].shape[0]
    need(trees and nodes, "its trees are leaves")
    leaves, votes = held["targets"].shape
    ends = dict(totals(rows, trees, outputs, node.options["aggregate"], x.dtype))
    space, out = b.new(8 * ends["groups"] * rows * (outputs + 1)), b.result(node.result)
    shares = b.shares(rows * trees * _STEPS)
    copies = 1 if held["modes"] is None and held["missing"] is None else 2
    row = copies * width * x.dtype.itemsize
    block = min(-(-rows // _WALKS), max(_KEYS // (_WALKS * row), 1)) * _WALKS
    spots |= {"packed": None, "keys": None}
    if width <= _WIDEST * trees and 24 * (2 * nodes + trees) < 2**32:
        names = ("roots", "features", "thresholds", "yes", "no", "modes", "missing")
        parts = [held[name] for name in names]
        spots["packed"] = b.constant(combined(_packing(width, leaves), *parts))
        spots["keys"] = b.new(shares * block * row)
    b.add(
        "trees", shares, x=b.spot(x), fault=b.fault(),
        width=width, trees=trees, nodes=nodes, leaves=leaves, votes=votes,
        space=space, out=out, copies=copies, block=block, room=block * row,
        **spots, **ends,
    )  # fmt: skip
    if ends["groups"] > 1:
        b.add("votes", 1, space=space, out=out, **ends)


def _packing(width: int, leaves: int) -> Any:
    """What packs nodes of trees: depths, roots, each node's two children in turn.

    The first byte is 0 where there are none that the kernel could go by.
    """

    def packed(
        roots: Array, features: Array, thresholds: Array, yes: Array, no: Array,
        modes: Array | None, missing: Array | None,
    ) -> Array:  # fmt: skip
        trees, count = len(roots), len(yes)
        kind = _NODES[thresholds.dtype.itemsize]
        start = _HEADER + -(-4 * trees // _HEADER) * _HEADER
        made = np.zeros(start + (trees + 2 * count) * kind.itemsize, np.uint8)
        children = np.concatenate((roots, yes, no))
        known = ((children >= -leaves) & (children < count)).all()
        known = known and ((features >= 0) & (features < width)).all()
        mode = np.zeros(count, np.uint8) if modes is None else modes
        depths = _depths(roots, yes, no) if known and (mode <= _GT).all() else None
        if depths is None:
            return made
        is_nan = np.isnan(thresholds)
        swapped = (mode > _LT) & ~is_nan
        keys = _keys(thresholds) - (((mode == 1) | (mode == 2)) & ~is_nan)
        last = swapped if missing is None else swapped ^ missing
        pair = np.where(swapped, (no, yes), (yes, no))
        child = np.concatenate((roots, pair.T.ravel()))
        inner, at = child >= 0, np.maximum(child, 0)
        made[_HEADER : _HEADER + 4 * trees].view(np.int32)[:] = depths
        nodes = made[start:].view(kind)
        nodes["key"] = np.where(inner, keys[at], np.iinfo(keys.dtype).max)
        nodes["feature"] = np.where(inner, (features + last * width)[at], 0)
        nodes["feature"] *= _WALKS * thresholds.dtype.itemsize
        places = np.where(inner, trees + 2 * at, np.arange(len(child)))
        nodes["next"] = places * kind.itemsize
        nodes["leaf"] = np.where(inner, 0, ~child)
        made[0] = 1
        return made

    return packed


def _depths(roots: Array, yes: Array, no: Array) -> Array | None:
    """The longest walk from each root; None where trees share nodes, or have cycles."""
    depths = np.zeros(len(roots), np.int32)
    tree, node = np.arange(len(roots)), roots
    seen = 0
    while (inner := node >= 0).any():
        tree, node = tree[inner], node[inner]
        seen += len(node)
        if seen > len(yes):
            return None
        depths[tree] += 1
        tree, node = np.tile(tree, 2), np.concatenate((yes[node], no[node]))
    return depths


def _keys(thresholds: Array) -> Array:
    """Integers that compare as the floats do; NaN is the least of them."""
    bits = thresholds.view(f"i{thresholds.dtype.itemsize}")
    least = np.iinfo(bits.dtype).min
    keys = np.where(bits < 0, least - bits, bits)
    return np.where(np.isnan(thresholds), least, keys)
