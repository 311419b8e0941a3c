"""Walks down tree ensembles by a kernel."""

from __future__ import annotations

import numpy as np

from burnish.ops import trees
from burnish.ops._cpu.call import dense, launch, usable

_STEPS = 64
"""The cost of a walk down a tree, in elements."""


@trees.tree_ensemble.on("numpy")
def _(
    x, roots, features, thresholds, yes, no, targets, weights, modes=None, missing=None,
    members=None, *, outputs, aggregate="sum",
):  # fmt: skip
    nodes = trees.Nodes(features, thresholds, yes, no, modes, missing, members)
    if _walks(x, roots, nodes):
        walk = _walking(nodes, len(targets))
        try:
            return trees.counted(x, walk, roots, targets, weights, outputs, aggregate)
        except LookupError:
            pass  # a place that is none: the plain form says of what
    return trees.tree_ensemble.value(
        x, roots, *nodes[:4], targets, weights, *nodes[4:], outputs=outputs,
        aggregate=aggregate,
    )  # fmt: skip


def _walks(x, roots, nodes):
    """Whether the kernel goes down such trees."""
    whole = (roots, nodes.features, nodes.yes, nodes.no)
    return (
        x.ndim == 2
        and nodes.members is None
        and x.dtype == nodes.thresholds.dtype == np.float32
        and all(a.dtype == np.int64 and a.ndim == 1 for a in whole)
        and nodes.thresholds.shape == nodes.yes.shape == nodes.no.shape
        and nodes.features.shape == nodes.yes.shape
        and len(roots) * len(x) > 0
        and usable()
    )


def _walking(nodes, leaves):
    """`trees.walking` by the kernel."""
    asked = {n: dense(getattr(nodes, n)) for n in nodes._fields[:4]}
    modes = None if nodes.modes is None else dense(nodes.modes).view(np.uint8)
    missing = None if nodes.missing is None else dense(nodes.missing).view(np.uint8)

    def walk(x, roots):
        leaf = np.empty((len(roots), len(x)), np.int64)
        fault = np.zeros(1, np.int64)
        launch(
            "trees", leaf.size * _STEPS, x=dense(x), roots=dense(roots), **asked,
            modes=modes, missing=missing, out=leaf, fault=fault, rows=len(x),
            width=x.shape[1], trees=len(roots), nodes=len(asked["yes"]), leaves=leaves,
        )  # fmt: skip
        if fault[0]:
            raise LookupError
        return leaf

    return walk
