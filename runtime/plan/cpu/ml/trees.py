"""Lower ensembles of decision trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.ops.ml.trees import totals
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.table import lower, need
from burnish.plan.graph import Constant, Node, Value

_STEPS = 64
"""The cost of a walk down a tree, in operations."""

_NAMES = "roots features thresholds yes no targets weights modes missing members"


@lower("tree_ensemble")
def tree_ensemble(b: Builder, node: Node) -> None:
    """Where nodes or leaves are none that there are, the call runs eagerly."""
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
    b.add(
        "trees", b.shares(rows * trees * _STEPS), x=b.spot(x), fault=b.fault(),
        width=width, trees=trees, nodes=nodes, leaves=leaves, votes=votes,
        space=space, out=out, **spots, **ends,
    )  # fmt: skip
    if ends["groups"] > 1:
        b.add("votes", 1, space=space, out=out, **ends)
