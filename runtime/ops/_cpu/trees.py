"""Votes of tree ensembles by a kernel."""

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
    y = None
    if _walks(x, roots, nodes, targets, weights):
        y = _voted(x, roots, nodes, targets, weights, outputs, aggregate)
    if y is not None:
        return y
    return trees.tree_ensemble.value(
        x, roots, *nodes[:4], targets, weights, *nodes[4:], outputs=outputs,
        aggregate=aggregate,
    )  # fmt: skip


def _walks(x, roots, nodes, targets, weights):
    """Whether the kernel goes down such trees."""
    shape = nodes.thresholds.shape
    return (
        x.ndim == 2
        and nodes.members is None
        and x.dtype == nodes.thresholds.dtype == weights.dtype == np.float32
        and roots.dtype == nodes.features.dtype == targets.dtype == np.int64
        and nodes.yes.dtype == nodes.no.dtype == np.int64
        and nodes.features.shape == nodes.yes.shape == nodes.no.shape == shape
        and targets.shape == weights.shape
        and all(
            _fits(a, kind, shape) for a, kind in zip(nodes[4:6], _KINDS, strict=True)
        )
        and len(roots) * len(x) > 0
        and usable()
    )


_KINDS = (np.uint8, np.bool_)
"""The dtypes of modes and of missing, bytes for the kernel."""


def _fits(a, kind, shape):
    return a is None or (a.dtype == kind and a.shape == shape)


def _voted(x, roots, nodes, targets, weights, outputs, aggregate):
    """The aggregated votes; None where some index is out of range."""
    rows, count = len(x), len(roots)
    ends = dict(trees.totals(rows, count, outputs, aggregate))
    space = np.empty((ends["groups"], rows, outputs + 1))
    out = np.empty((rows, outputs), np.float32)
    fault = np.zeros(1, np.int64)
    asked = dict(zip(nodes._fields[:6], map(dense, nodes), strict=False))
    launch(
        "trees", rows * count * _STEPS, x=dense(x), roots=dense(roots), **asked,
        **ends, space=space, out=out, targets=dense(targets), weights=dense(weights),
        fault=fault, width=x.shape[1], trees=count, nodes=len(nodes.yes),
        leaves=len(targets), votes=targets.shape[1],
    )  # fmt: skip
    if fault[0]:
        return None
    if ends["groups"] > 1:
        launch("votes", 1, space=space, out=out, **ends)
    return out
