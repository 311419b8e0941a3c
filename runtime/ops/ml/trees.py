"""Ensembles of decision trees: N rows of F features, T trees, C targets.

Which leaf a row reaches changes in steps, so these have no gradient and say so when
asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from burnish.backend import Array, as_indices, namespace
from burnish.errors import InputError
from burnish.operator import operator

MEMBER = 6
_START = {"sum": 0.0, "average": 0.0, "min": math.inf, "max": -math.inf}
_ROWS, _PLACES = 1 << 10, 1 << 15
"""Rows, and rows times trees, at a time: a CPU's caches hold the nodes of few trees."""
_FEW_ROWS, _GROUP = 16, 1 << 9
"""Rows that groups of trees are for, and the rows times trees of a group."""

_MANY = 1 << 24
"""Rows times trees at a time where one launch goes over all of them."""


class Nodes(NamedTuple):
    """The comparisons and children of tree nodes; `tree_ensemble` describes them."""

    features: Any
    thresholds: Any
    yes: Any
    no: Any
    modes: Any
    missing: Any
    members: Any


Walk = Callable[[Any, Any], Any]
"""Rows of x and roots of trees to the leaf that each row reaches: (T, N)"""


@operator
def tree_ensemble(
    x,
    roots,
    features,
    thresholds,
    yes,
    no,
    targets,
    weights,
    modes=None,
    missing=None,
    members=None,
    *,
    outputs: int,
    aggregate: str = "sum",
) -> Array:
    """The votes of the leaves that each row of x reaches, aggregated: (N, F) -> (N, C)

    roots (T,): the trees' first nodes. A node compares x[:, features] with thresholds;
    yes and no are children: a node, or ~leaf. targets, weights (leaves, votes):
    what a leaf adds to which target; votes for target `outputs` count for nothing.
    modes: 0 <=, 1 <, 2 >=, 3 >, 4 ==, 5 !=, 6 in members[threshold]; <= by default.
    missing: whether nan answers yes. aggregate: "sum", "average", "min" or "max".
    """
    if len(x.shape) != 2:
        raise InputError(f"tree_ensemble: expected x (N, F), got {x.shape}")
    xp = namespace(x)
    walk = _walking(xp, Nodes(features, thresholds, yes, no, modes, missing, members))
    most, places = (_ROWS, _PLACES) if xp is np else (_MANY, _MANY)
    rows = max(min(len(x), most), 1)
    trees = max(places // rows, 1)
    total = xp.full((len(x), outputs), _START[aggregate])
    for i in range(0, len(x), rows):
        for j in range(0, len(roots), trees):
            leaf = walk(x[i : i + rows], roots[j : j + trees])
            sums = _sums(xp, leaf, targets, weights, outputs, aggregate)
            total[i : i + rows] = _joined(xp, aggregate)(total[i : i + rows], sums)
    if aggregate == "average":
        total /= len(roots)
    elif aggregate != "sum":
        total = xp.where(xp.isinf(total), 0, total)
    return total.astype(weights.dtype)


def totals(
    rows: int, trees: int, outputs: int, aggregate: str, dtype: Any
) -> dict[str, int]:
    """The fields that the kernels `trees` and `votes` share.

    Threads share rows; where these are few, groups of trees. There are as many groups
    for any number of threads, so that sums are the same.
    """
    from burnish.kernels.records import VOTES

    worth = 1 if rows >= _FEW_ROWS else rows * trees // _GROUP
    return {
        "rows": rows,
        "outputs": outputs,
        "groups": min(max(worth, 1), trees, _FEW_ROWS),
        "how": VOTES.get(aggregate, VOTES["sum"]),
        "divisor": trees if aggregate == "average" else 1,
        "is_double": int(dtype == np.float64),
    }


def _joined(xp: Any, aggregate: str) -> Any:
    return {"min": xp.minimum, "max": xp.maximum}.get(aggregate, xp.add)


def _sums(xp, leaf, targets, weights, outputs, aggregate):
    """The sum, minimum or maximum of the votes for each row's targets: (N, C)

    Where nobody votes it is what the total starts from.
    """
    rows, room = leaf.shape[1], leaf.shape[1] * (outputs + 1)
    first = xp.arange(0, room, outputs + 1)[:, None]
    spots = (as_indices(targets[leaf]) + first).ravel()
    votes = weights[leaf].ravel()
    if aggregate in ("sum", "average"):
        sums = xp.bincount(spots, votes.astype(np.float64), room)
    else:
        sums = xp.full(room, _START[aggregate], votes.dtype)
        _joined(xp, aggregate).at(sums, spots, votes)
    return sums.reshape(rows, outputs + 1)[:, :outputs]


def _walking(xp: Any, nodes: Nodes) -> Walk:
    """All rows go down all trees a step at a time, until they are at leaves."""
    features, yes, no = map(as_indices, (nodes.features, nodes.yes, nodes.no))

    def walk(x: Any, roots: Any) -> Any:
        flat = xp.ascontiguousarray(x).ravel()
        trees, (rows, width) = len(roots), x.shape
        leaf = xp.empty(trees * rows, np.intp)
        place = xp.repeat(as_indices(roots), rows)
        first = xp.tile(xp.arange(rows) * width, trees)
        who = xp.arange(trees * rows)
        for _ in range(len(features) + 1):
            there = place < 0
            if there.any():
                leaf[who[there]] = ~place[there]
                still = ~there
                place, first, who = place[still], first[still], who[still]
            if not len(place):
                return leaf.reshape(trees, rows)
            value = flat.take(features.take(place) + first)
            says_yes = _answer(xp, nodes, value, place)
            place = xp.where(says_yes, yes.take(place), no.take(place))
        raise InputError(
            "tree_ensemble: expected trees, got nodes that lead back to themselves"
        )

    return walk


def _answer(xp, nodes, value, place):
    """Each node's comparison with each value: true or false."""
    threshold = nodes.thresholds.take(place)
    if nodes.modes is None:
        yes = value <= threshold
    else:
        yes = _compared(xp, value, threshold, nodes.modes.take(place), nodes.members)
    if nodes.missing is None:
        return yes
    return yes | (xp.isnan(value) & nodes.missing.take(place))


def _compared(xp, value, threshold, mode, members):
    asked = (
        value <= threshold,
        value < threshold,
        value >= threshold,
        value > threshold,
        value == threshold,
        value != threshold,
    )
    yes = xp.select([mode == i for i in range(len(asked))], asked, False)
    if members is None:
        return yes
    chosen = xp.where(mode == MEMBER, threshold, 0).astype(np.int64)
    inside = (members[chosen] == value[..., None]).any(axis=-1)
    return xp.where(mode == MEMBER, inside, yes)
