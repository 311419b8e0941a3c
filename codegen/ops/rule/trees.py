"""Convert ONNX's encodings of tree ensembles to the runtime's.

Nodes without leaves are numbered, leaves too; a child is a node's number or ~leaf.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from burnish.codegen.ops.rule.expressions import buffer, operand
from burnish.codegen.program import Expression, Layer

_KINDS = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")
MODES = {f"BRANCH_{kind}": code for code, kind in enumerate(_KINDS)}
_LEAF = 255


@dataclass(frozen=True)
class Trees:
    """The buffers of a TreeEnsemble layer; None for those that it does not need."""

    roots: np.ndarray
    features: np.ndarray
    thresholds: np.ndarray
    yes: np.ndarray
    no: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    modes: np.ndarray | None
    missing: np.ndarray | None
    members: np.ndarray | None = None

    def voting(self) -> Trees:
        """Trees that give 1 to an output that a leaf votes for, by "max"; else 0."""
        return replace(self, weights=np.ones_like(self.weights))

    def layer(self, x: Expression, outputs: int, aggregate: str = "sum") -> Layer:
        """`nn.TreeEnsemble(...)` on x."""
        options: dict[str, Any] = {}
        if self.targets.shape[1] != 1:
            options["votes"] = self.targets.shape[1]
        if aggregate != "sum":
            options["aggregate"] = aggregate
        options |= {
            n: True for n in ("modes", "missing") if getattr(self, n) is not None
        }
        if self.members is not None:
            options["members"] = self.members.shape
        if self.weights.dtype != np.float32:
            options["dtype"] = self.weights.dtype.name
        sizes = (len(self.roots), len(self.features), len(self.targets), outputs)
        weights = {n: buffer(a, n) for n, a in vars(self).items() if a is not None}
        return Layer("TreeEnsemble", sizes, options, weights, (operand(x),))


def by_number(
    nodes: dict[str, Any], votes: dict[str, Any], outputs: int, dtype: Any
) -> Trees:
    """Trees whose nodes carry a tree's and a node's number (ai.onnx.ml 1 to 4).

    nodes: treeids, nodeids, modes (their codes), featureids, values, truenodeids,
    falsenodeids and perhaps missing; votes: treeids, nodeids, ids and weights.
    """
    tree, node = (np.asarray(nodes[n], np.int64) for n in ("treeids", "nodeids"))
    modes = nodes["modes"]
    inside = modes != _LEAF
    code = np.where(inside, np.cumsum(inside) - 1, ~(np.cumsum(~inside) - 1))
    step = int(max(node.max(initial=0), np.max(nodes["truenodeids"], initial=0))) + 1
    order = np.argsort(tree * step + node, kind="stable")
    numbered = (tree * step + node)[order]

    def at(trees: Any, ids: Any) -> Any:
        wanted = np.asarray(trees, np.int64) * step + np.asarray(ids, np.int64)
        return order[np.searchsorted(numbered, wanted)]

    yes, no = (
        at(tree[inside], np.asarray(nodes[n], np.int64)[inside])
        for n in ("truenodeids", "falsenodeids")
    )
    is_root = np.ones(len(tree), bool)
    is_root[yes] = is_root[no] = False
    targets, weights = _ballots(
        ~code[at(votes["treeids"], votes["nodeids"])],
        np.asarray(votes["ids"], np.int64),
        np.asarray(votes["weights"], dtype),
        int((~inside).sum()),
        outputs,
    )
    missing = _truths(nodes["missing"], len(tree))[inside]
    return Trees(
        code[is_root],
        np.asarray(nodes["featureids"], np.int64)[inside],
        np.asarray(nodes["values"], dtype)[inside],
        code[yes],
        code[no],
        targets,
        weights,
        modes[inside] if modes[inside].any() else None,
        missing if missing.any() else None,
    )


def _truths(given: np.ndarray | None, count: int) -> np.ndarray:
    """Numbers as truths; of none, or of an empty list, all false."""
    absent = given is None or not len(given)
    return np.zeros(count, bool) if absent else np.asarray(given, bool)


def mode_codes(words: list[str]) -> np.ndarray:
    """The numbers of nodes' modes; leaves have one of their own."""
    return np.asarray([MODES.get(word, _LEAF) for word in words], np.uint8)


def certain(nodes: dict[str, Any], votes: dict[str, Any], outputs: int) -> np.ndarray:
    """Whether each output has a vote in every row: all leaves of a tree have one."""
    leaf = nodes["modes"] == _LEAF
    trees, of_tree = np.unique(np.asarray(nodes["treeids"])[leaf], return_counts=True)
    tree, ids, node = (
        np.asarray(votes[n], np.int64) for n in ("treeids", "ids", "nodeids")
    )
    known = (ids >= 0) & (ids < outputs) & _are_first(tree, node, ids)
    pairs, counts = np.unique(
        (np.searchsorted(trees, tree) * outputs + ids)[known], return_counts=True
    )
    full = counts == of_tree[pairs // outputs]
    return np.isin(np.arange(outputs), pairs[full] % outputs)


def _are_first(*keys: np.ndarray) -> np.ndarray:
    """Whether each row of keys is the first of its kind; most files sort them."""
    if _after(*keys).all():
        return np.ones(len(keys[0]), bool)
    order = np.lexsort(keys[::-1])
    first = np.ones(len(order), bool)
    first[order[1:]] = _after(*(key[order] for key in keys))
    return first


def _after(*keys: np.ndarray) -> np.ndarray:
    """Whether each row of keys but the first is greater than the one before it."""
    after = np.zeros(max(len(keys[0]) - 1, 0), bool)
    for key in keys[::-1]:
        step = np.diff(key)
        after = (step > 0) | ((step == 0) & after)
    return after


def _ballots(
    leaf: np.ndarray, ids: np.ndarray, weights: np.ndarray, leaves: int, outputs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Each leaf's votes in one row; rows with fewer are filled up by void ones.

    Where trees have one output, onnxruntime reads the first vote of a leaf alone.
    """
    real = leaf >= 0
    leaf, ids, weights = leaf[real], ids[real], weights[real]
    order = np.argsort(leaf, kind="stable")
    counts = np.bincount(leaf, minlength=leaves)
    column = np.arange(len(leaf)) - np.repeat(np.cumsum(counts) - counts, counts)
    if outputs == 1:
        order, column = order[column == 0], column[column == 0]
        counts = np.minimum(counts, 1)
    shape = (leaves, int(counts.max(initial=1)))
    targets, values = np.full(shape, outputs), np.zeros(shape, weights.dtype)
    targets[leaf[order], column] = ids[order]
    values[leaf[order], column] = weights[order]
    return targets.astype(np.int64), values


def by_position(nodes: dict[str, Any], leaves: dict[str, Any]) -> Trees:
    """Trees whose nodes point at positions (ai.onnx.ml 5)."""
    yes, no = (
        np.where(np.asarray(nodes[f"{side}leafs"], bool), ~ids, ids)
        for side in ("true", "false")
        for ids in [np.asarray(nodes[f"{side}nodeids"], np.int64)]
    )
    modes = np.asarray(nodes["modes"], np.uint8)
    thresholds = np.array(nodes["splits"])
    missing = _truths(nodes["missing"], len(modes))
    members = None
    asks = modes == MODES["BRANCH_MEMBER"]
    if asks.any():
        members = _sets(np.asarray(nodes["members"]))
        thresholds[asks] = np.arange(int(asks.sum()))
    return Trees(
        np.asarray(nodes["roots"], np.int64),
        np.asarray(nodes["featureids"], np.int64),
        thresholds,
        yes,
        no,
        np.asarray(leaves["targetids"], np.int64)[:, None],
        np.asarray(leaves["weights"])[:, None],
        modes if modes.any() else None,
        missing if missing.any() else None,
        members,
    )


def _sets(values: np.ndarray) -> np.ndarray:
    """Sets divided by nan, one a row, shorter ones filled up with nan."""
    ends = np.flatnonzero(np.isnan(values))
    if not len(values) or not np.isnan(values[-1]):
        ends = np.append(ends, len(values))
    starts = np.append(0, ends[:-1] + 1)
    longest = int((ends - starts).max(initial=0))
    places = starts[:, None] + np.arange(longest)
    filled = np.append(values, np.full(longest, np.nan, values.dtype))
    return np.where(places < ends[:, None], filled[places], values.dtype.type(np.nan))
