"""ai.onnx.ml's tree ensembles, in their three encodings."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.codegen.ops.ml.classifiers import (
    above,
    both,
    greatest,
    labelled,
    transformed,
)
from burnish.codegen.ops.rule.expressions import buffer, call, operand
from burnish.codegen.ops.rule.registry import NodeContext, Result, onnx_op
from burnish.codegen.ops.rule.traits import OWN_SHAPE
from burnish.codegen.ops.rule.trees import (
    Trees,
    by_number,
    by_position,
    certain,
    mode_codes,
)
from burnish.codegen.ops.rule.words import at, cast, named
from burnish.codegen.program import (
    BinOp,
    Constant,
    Expression,
    Literal,
    Slice,
    UnaryOp,
)

ML = "ai.onnx.ml"
_AGGREGATES = ("average", "sum", "min", "max")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@onnx_op("TreeEnsemble", since=5, domain=ML, traits=OWN_SHAPE)
def tree_ensemble(
    X: Expression,
    *,
    aggregate_function: int = 1,
    leaf_targetids: np.ndarray,
    leaf_weights: Constant,
    membership_values: Constant | None = None,
    n_targets: int | None = None,
    nodes_falseleafs: np.ndarray,
    nodes_falsenodeids: np.ndarray,
    nodes_featureids: np.ndarray,
    nodes_hitrates: Constant | None = None,
    nodes_missing_value_tracks_true: np.ndarray | None = None,
    nodes_modes: Constant,
    nodes_splits: Constant,
    nodes_trueleafs: np.ndarray,
    nodes_truenodeids: np.ndarray,
    post_transform: int = 0,
    tree_roots: np.ndarray,
) -> Result:
    nodes = {
        "roots": tree_roots,
        "featureids": nodes_featureids,
        "splits": nodes_splits.array,
        "modes": nodes_modes.array,
        "truenodeids": nodes_truenodeids,
        "trueleafs": nodes_trueleafs,
        "falsenodeids": nodes_falsenodeids,
        "falseleafs": nodes_falseleafs,
        "missing": nodes_missing_value_tracks_true,
        "members": () if membership_values is None else membership_values.array,
    }
    leaves = {"targetids": leaf_targetids, "weights": leaf_weights.array}
    outputs = n_targets or int(leaf_targetids.max()) + 1
    trees = by_position(nodes, leaves)
    scores = trees.layer(X, outputs, _AGGREGATES[aggregate_function])
    return _alone(scores, outputs, _TRANSFORMS[post_transform])


def _held(
    *,
    base_values: np.ndarray | None = None,
    base_values_as_tensor: Constant | None = None,
    nodes_falsenodeids: np.ndarray | None = None,
    nodes_featureids: np.ndarray | None = None,
    nodes_hitrates: np.ndarray | None = None,
    nodes_hitrates_as_tensor: Constant | None = None,
    nodes_missing_value_tracks_true: np.ndarray | None = None,
    nodes_modes: list[str] | None = None,
    nodes_nodeids: np.ndarray | None = None,
    nodes_treeids: np.ndarray | None = None,
    nodes_truenodeids: np.ndarray | None = None,
    nodes_values: np.ndarray | None = None,
    nodes_values_as_tensor: Constant | None = None,
    post_transform: str = "NONE",
) -> dict[str, Any]:
    """The tables of nodes by their attributes, modes by their codes."""
    given = locals()
    return {**given, "nodes_modes": mode_codes(given["nodes_modes"])}


@onnx_op("TreeEnsembleRegressor", domain=ML, traits=OWN_SHAPE, options=_held)
def tree_ensemble_regressor(
    X: Expression,
    *,
    aggregate_function: str = "SUM",
    n_targets: int | None = None,
    target_ids: np.ndarray | None = None,
    target_nodeids: np.ndarray | None = None,
    target_treeids: np.ndarray | None = None,
    target_weights: np.ndarray | None = None,
    target_weights_as_tensor: Constant | None = None,
    **tables: Any,
) -> Result:
    return _regressed(X, locals() | _held(**tables))


def _regressed(x: Expression, given: dict[str, Any]) -> Result:
    outputs = given["n_targets"] or int(given["target_ids"].max()) + 1
    trees = _numbered(given, "target", outputs)
    y = _real(x, trees, outputs, given["aggregate_function"].lower())
    base = _numbers(given, "base_values")
    if base is None or len(base) != outputs or not base.any():
        return _alone(y, outputs, given["post_transform"])
    if outputs == 1:
        return _alone(BinOp("+", y, _beside(base)), 1, given["post_transform"])
    voted = _voted(x, trees, given, "target", outputs)
    if isinstance(voted, np.ndarray):
        added = _beside(np.where(voted, base, base.dtype.type(0)))
    else:
        added = call("where", voted, _beside(base), 0.0)
    return _alone(BinOp("+", y, added), outputs, given["post_transform"])


def _voted(
    x: Expression, trees: Trees, given: dict[str, Any], kind: str, outputs: int
) -> Expression | np.ndarray:
    """Outputs that leaves vote for: (outputs,), or (N, outputs) where rows differ.

    To onnxruntime the score of another is 0, whatever its base value.
    """
    votes = {name: given[f"{kind}_{name}"] for name in ("treeids", "nodeids", "ids")}
    nodes = {name: given[f"nodes_{name}"] for name in ("treeids", "modes")}
    possible = np.isin(np.arange(outputs), votes["ids"])
    if (certain(nodes, votes, outputs) == possible).all():
        return possible
    return BinOp(">", _real(x, trees.voting(), outputs, "max"), Literal(0))


def _where(
    voted: Expression | np.ndarray, scores: Expression, other: float
) -> Expression:
    if isinstance(voted, np.ndarray):
        if voted.all():
            return scores
        voted = buffer(voted, "voted")
    return call("where", voted, scores, other)


@onnx_op("TreeEnsembleClassifier", domain=ML, traits=OWN_SHAPE, options=_held)
def tree_ensemble_classifier(
    X: Expression,
    *,
    class_ids: np.ndarray | None = None,
    class_nodeids: np.ndarray | None = None,
    class_treeids: np.ndarray | None = None,
    class_weights: np.ndarray | None = None,
    class_weights_as_tensor: Constant | None = None,
    classlabels_int64s: list[int] | None = None,
    classlabels_strings: list[str] | None = None,
    node: NodeContext,
    **tables: Any,
) -> Result:
    return _classified(X, node, locals() | _held(**tables))


def _classified(x: Expression, node: NodeContext, given: dict[str, Any]) -> Result:
    """Labels and scores of each class.

    The label is that of the greatest score among classes that leaves vote for; of two
    classes it is the second where one score is above a threshold.
    """
    labels = given["classlabels_strings"] or given["classlabels_int64s"]
    ids, post = np.unique(given["class_ids"]).tolist(), given["post_transform"]
    base = _numbers(given, "base_values")
    if base is None:
        base = np.zeros(0, np.float32)
    alone = ids == [0] and len(labels) < 3 and len(base) < 2
    outputs = 1 if alone else len(labels)
    trees = _numbered(given, "class", outputs)
    made = _real(x, trees, outputs, "sum")
    voted = _voted(x, trees, given, "class", outputs)
    if isinstance(voted, Expression):
        voted = named(node, voted, "voted", "bool")
    if outputs == 2:
        made = _of_two(node, made, base, voted)
    elif base.any():
        made = BinOp("+", made, _beside(np.pad(base, (0, outputs - len(base)))))
    scores = named(node, made, "scores", "float32")
    positive = len(ids) == 1 and bool((trees.weights >= 0).all())
    limit = 0.5 if positive else 0
    if len(labels) == 1:
        each = labels * 2 if isinstance(labels[0], str) else [0, 1]
        return above(node, each, scores, 0), _alone(scores, 1, post)
    if alone:
        return above(node, labels, scores, limit), both(scores, post, not positive)
    if len(labels) == 2:
        if isinstance(voted, Expression) and len(base):
            columns = [[at(v, 1, Literal(i)) for i in (0, 1)] for v in (scores, voted)]
            (first, second), (_, ahead) = columns
            over = BinOp(">", call("where", ahead, second, first), Literal(limit))
            label = labelled(node, labels, cast(over, "int64"))
        else:
            column = 1 if isinstance(voted, Expression) else ids[-1]
            label = above(node, labels, scores, limit, column)
    else:
        known = scores if len(base) else _where(voted, scores, -np.inf)
        label = greatest(node, labels, known)
    return label, transformed(scores, post)


def _of_two(
    node: NodeContext,
    scores: Expression,
    base: np.ndarray,
    voted: Expression | np.ndarray,
) -> Expression:
    """Scores of two classes with their base values, as onnxruntime adds them.

    A single base value is the first class's; a class without votes has 0. With a base
    value each, the second class has its own and the *first* class's votes where a leaf
    votes for it, and the first class has the opposite. With none, a row without votes
    for the second class has the first one's there, and the first the opposite.
    """
    ahead = not isinstance(voted, np.ndarray) or (len(base) > 0 and voted[1])
    if len(base) == 1 or not ahead:
        apart = _beside(np.pad(base, (0, 2 - len(base))))
        added = BinOp("+", scores, apart) if base.any() else scores
        return _where(voted, added, 0.0)
    first = at(scores, 1, Slice(stop=Literal(1)))
    if len(base):
        first = BinOp("+", first, Literal(_float(base[1])))
    first = named(node, first, "first", "float32")
    ruled = call("concat", [UnaryOp("-", first), first], axis=1)
    if isinstance(voted, np.ndarray):
        return _where(voted, ruled, 0.0)
    second = at(voted, 1, Slice(Literal(1)))
    if not len(base):
        return call("where", second, scores, ruled)
    apart = BinOp("+", scores, _beside(base))
    return _where(voted, call("where", second, ruled, apart), 0.0)


def _alone(scores: Expression, outputs: int, post: str) -> Expression:
    """A single score is onnxruntime's as it is, but for PROBIT."""
    return scores if outputs == 1 and post != "PROBIT" else transformed(scores, post)


def _real(x: Expression, trees: Trees, outputs: int, aggregate: str) -> Expression:
    """The trees' scores in float32, whatever the file keeps them in."""
    whole = x.dtype is not None and "int" in x.dtype
    scores = trees.layer(
        cast(operand(x), "float32") if whole else x, outputs, aggregate
    )
    object.__setattr__(scores, "dtype", trees.weights.dtype.name)
    return cast(scores, "float32")


def _beside(base: np.ndarray) -> Expression:
    if base.size == 1:
        return Literal(_float(base[0]))
    return buffer(base.astype(np.float32), "base")


def _float(number: Any) -> float:
    """A float32's shortest decimal."""
    return float(str(np.float32(number)))


def _numbers(given: dict[str, Any], name: str) -> np.ndarray | None:
    """An attribute as floats: of the file's own type, or of its tensor's."""
    held = given.get(f"{name}_as_tensor")
    if held is not None and held.array.size:
        return held.array.reshape(-1)
    return None if given[name] is None else np.asarray(given[name], np.float32)


def _numbered(given: dict[str, Any], kind: str, outputs: int) -> Trees:
    nodes = {
        name: given[f"nodes_{name}"]
        for name in (
            *("treeids", "nodeids", "modes", "featureids"),
            *("truenodeids", "falsenodeids"),
        )
    }
    values = _numbers(given, "nodes_values")
    weights = _numbers(given, f"{kind}_weights")
    assert values is not None
    assert weights is not None
    nodes |= {"values": values, "missing": given["nodes_missing_value_tracks_true"]}
    votes = {name: given[f"{kind}_{name}"] for name in ("treeids", "nodeids", "ids")}
    return by_number(nodes, votes | {"weights": weights}, outputs, values.dtype)
