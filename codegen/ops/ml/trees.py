"""ai.onnx.ml's tree ensembles, in their three encodings."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.codegen.ops.ml.classifiers import (
    above,
    both,
    greatest,
    transformed,
    weight,
)
from burnish.codegen.ops.rule.expressions import call, operand
from burnish.codegen.ops.rule.registry import NodeContext, Result, onnx_op
from burnish.codegen.ops.rule.traits import OWN_SHAPE
from burnish.codegen.ops.rule.trees import Trees, by_number, by_position
from burnish.codegen.ops.rule.words import cast, named
from burnish.codegen.program import BinOp, Constant, Expression, Literal

ML = "ai.onnx.ml"
_AGGREGATES = ("average", "sum", "min", "max")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@onnx_op("TreeEnsemble", since=5, domain=ML, traits=OWN_SHAPE)
def tree_ensemble(
    X: Expression,
    *,
    aggregate_function: int = 1,
    leaf_targetids: list[int],
    leaf_weights: Constant,
    membership_values: Constant | None = None,
    n_targets: int | None = None,
    nodes_falseleafs: list[int],
    nodes_falsenodeids: list[int],
    nodes_featureids: list[int],
    nodes_hitrates: Constant | None = None,
    nodes_missing_value_tracks_true: list[int] | None = None,
    nodes_modes: Constant,
    nodes_splits: Constant,
    nodes_trueleafs: list[int],
    nodes_truenodeids: list[int],
    post_transform: int = 0,
    tree_roots: list[int],
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
    outputs = n_targets or max(leaf_targetids) + 1
    trees = by_position(nodes, leaves)
    scores = trees.layer(X, outputs, _AGGREGATES[aggregate_function])
    return _alone(scores, outputs, _TRANSFORMS[post_transform])


@onnx_op("TreeEnsembleRegressor", domain=ML, traits=OWN_SHAPE)
def tree_ensemble_regressor(
    X: Expression,
    *,
    aggregate_function: str = "SUM",
    base_values: list[float] | None = None,
    base_values_as_tensor: Constant | None = None,
    n_targets: int | None = None,
    nodes_falsenodeids: list[int] | None = None,
    nodes_featureids: list[int] | None = None,
    nodes_hitrates: list[float] | None = None,
    nodes_hitrates_as_tensor: Constant | None = None,
    nodes_missing_value_tracks_true: list[int] | None = None,
    nodes_modes: list[str] | None = None,
    nodes_nodeids: list[int] | None = None,
    nodes_treeids: list[int] | None = None,
    nodes_truenodeids: list[int] | None = None,
    nodes_values: list[float] | None = None,
    nodes_values_as_tensor: Constant | None = None,
    post_transform: str = "NONE",
    target_ids: list[int] | None = None,
    target_nodeids: list[int] | None = None,
    target_treeids: list[int] | None = None,
    target_weights: list[float] | None = None,
    target_weights_as_tensor: Constant | None = None,
) -> Result:
    return _regressed(X, locals())


def _regressed(x: Expression, given: dict[str, Any]) -> Result:
    outputs = given["n_targets"] or max(given["target_ids"]) + 1
    trees = _numbered(given, "target", outputs)
    y = _real(x, trees, outputs, given["aggregate_function"].lower())
    base = _numbers(given, "base_values")
    if base is not None and len(base) == outputs > 1:
        base = _of_voted(base, given["target_ids"])
    if base is not None and base.any():
        y = BinOp("+", y, _beside(base))
    return _alone(y, outputs, given["post_transform"])


@onnx_op("TreeEnsembleClassifier", domain=ML, traits=OWN_SHAPE)
def tree_ensemble_classifier(
    X: Expression,
    *,
    base_values: list[float] | None = None,
    base_values_as_tensor: Constant | None = None,
    class_ids: list[int] | None = None,
    class_nodeids: list[int] | None = None,
    class_treeids: list[int] | None = None,
    class_weights: list[float] | None = None,
    class_weights_as_tensor: Constant | None = None,
    classlabels_int64s: list[int] | None = None,
    classlabels_strings: list[str] | None = None,
    nodes_falsenodeids: list[int] | None = None,
    nodes_featureids: list[int] | None = None,
    nodes_hitrates: list[float] | None = None,
    nodes_hitrates_as_tensor: Constant | None = None,
    nodes_missing_value_tracks_true: list[int] | None = None,
    nodes_modes: list[str] | None = None,
    nodes_nodeids: list[int] | None = None,
    nodes_treeids: list[int] | None = None,
    nodes_truenodeids: list[int] | None = None,
    nodes_values: list[float] | None = None,
    nodes_values_as_tensor: Constant | None = None,
    post_transform: str = "NONE",
    node: NodeContext,
) -> Result:
    return _classified(X, node, locals())


def _classified(x: Expression, node: NodeContext, given: dict[str, Any]) -> Result:
    """Labels and scores of each class.

    The label is that of the greatest score among classes that leaves vote for; of two
    classes it is the second where one score is above a threshold.
    """
    labels = given["classlabels_strings"] or given["classlabels_int64s"]
    ids, post = sorted(set(given["class_ids"])), given["post_transform"]
    base = _numbers(given, "base_values")
    if base is None:
        base = np.zeros(0, np.float32)
    alone = ids == [0] and len(labels) < 3 and len(base) < 2
    outputs = 1 if alone else len(labels)
    trees = _numbered(given, "class", outputs)
    made = _real(x, trees, outputs, "sum")
    if base.any():
        made = BinOp("+", made, _beside(_of_classes(base, ids, outputs)))
    scores = named(node, made, "scores", "float32")
    positive = len(ids) == 1 and bool((trees.weights >= 0).all())
    limit = 0.5 if positive else 0
    if len(labels) == 1:
        each = labels * 2 if isinstance(labels[0], str) else [0, 1]
        return above(node, each, scores, 0), _alone(scores, 1, post)
    if alone:
        return above(node, labels, scores, limit), both(scores, post, not positive)
    if len(labels) == 2:
        label = above(node, labels, scores, limit, ids[-1])
    elif len(ids) == len(labels) or len(base):
        label = greatest(node, labels, scores)
    else:
        voted = call("take", scores, weight("voted", np.asarray(ids, np.int64)), axis=1)
        label = greatest(node, [labels[i] for i in ids], voted)
    return label, transformed(scores, post)


def _of_classes(base: np.ndarray, ids: list[int], outputs: int) -> np.ndarray:
    """The base value of each score, as onnxruntime reads it for two classes.

    A single value is the first class's; a class without votes keeps a score of 0.
    """
    if outputs != 2 or len(base) > 2:
        return base
    return _of_voted(np.append(base, base.dtype.type(0))[:2], ids)


def _of_voted(base: np.ndarray, ids: list[int]) -> np.ndarray:
    """Base values of the outputs that leaves vote for; onnxruntime has 0 elsewhere."""
    return np.where(np.isin(np.arange(len(base)), ids), base, base.dtype.type(0))


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
        return Literal(float(str(np.float32(base[0]))))
    return weight("base", base.astype(np.float32))


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
