"""ai.onnx.ml's models: linear ones, support vectors, trees; scores and labels.

Where the specification is silent (scores of two classes from one) they are what
onnxruntime gives.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from burnish.codegen.ops.rule.expressions import (
    UnfitError,
    buffer,
    call,
    layer,
    operand,
)
from burnish.codegen.ops.rule.registry import NodeContext, Result, onnx_op
from burnish.codegen.ops.rule.traits import OWN_SHAPE
from burnish.codegen.ops.rule.words import at, cast, named
from burnish.codegen.program import (
    BinOp,
    Constant,
    Expression,
    Literal,
    UnaryOp,
)

ML = "ai.onnx.ml"
_TRANSFORMS = {
    "SOFTMAX": "softmax",
    "LOGISTIC": "sigmoid",
    "SOFTMAX_ZERO": "softmax_zero",
    "PROBIT": "probit",
}


def _linear(x: Expression, table: Any, bias: Any) -> Expression:
    """`nn.Linear` on x, weight (out, in)."""
    arrays = {"weight": np.asarray(table, np.float32)}
    if bias is not None:
        arrays["bias"] = np.asarray(bias, np.float32)
    weights = {name: buffer(array, name) for name, array in arrays.items()}
    sizes = arrays["weight"].shape[::-1]
    x = cast(operand(x), "float32")
    return layer("Linear", sizes, {"bias": bias is not None}, weights, x)


def transformed(scores: Expression, post_transform: str) -> Expression:
    """The scores as probabilities, in the way the file names."""
    name = _TRANSFORMS.get(post_transform)
    return scores if name is None else call(name, scores)


def labelled(node: NodeContext, labels: list[Any], index: Expression) -> Expression:
    """The labels at these places; the places where labels are those."""
    if not node.outputs[0] or labels == list(range(len(labels))):
        return index
    array = np.asarray(labels, object if isinstance(labels[0], str) else np.int64)
    text = array.dtype == object
    held = operand(Constant(array)) if text else buffer(array, "labels")
    return call("take", held, index, axis=0)


def greatest(node: NodeContext, labels: list[Any], scores: Expression) -> Expression:
    return labelled(node, labels, call("arg_max", scores, axis=1))


def above(
    node: NodeContext,
    labels: list[Any],
    scores: Expression,
    limit: float,
    column: int = 0,
) -> Expression:
    """labels[1] where a column of the scores is above the limit, else labels[0]."""
    over = BinOp(">", at(scores, 1, Literal(column)), Literal(limit))
    return labelled(node, labels, cast(over, "int64"))


def both(score: Expression, post_transform: str, signed: bool) -> Expression:
    """Scores of two classes from that of the second: -s or 1 - s beside s."""
    if post_transform == "LOGISTIC":
        pair = call("concat", [UnaryOp("-", score), score], axis=1)
        return call("sigmoid", pair)
    other = UnaryOp("-", score) if signed else BinOp("-", Literal(1), score)
    pair = call("concat", [other, score], axis=1)
    return call("probit", pair) if post_transform == "PROBIT" else pair


@onnx_op("LinearRegressor", domain=ML, traits=OWN_SHAPE)
def linear_regressor(
    X: Expression,
    *,
    coefficients: list[float] | None = None,
    intercepts: list[float] | None = None,
    post_transform: str = "NONE",
    targets: int = 1,
) -> Result:
    table = np.asarray(coefficients, np.float32).reshape(targets, -1)
    return transformed(_linear(X, table, intercepts), post_transform)


@onnx_op("LinearClassifier", domain=ML, traits=OWN_SHAPE)
def linear_classifier(
    X: Expression,
    *,
    classlabels_ints: list[int] | None = None,
    classlabels_strings: list[str] | None = None,
    coefficients: list[float],
    intercepts: list[float] | None = None,
    multi_class: int = 0,
    post_transform: str = "NONE",
    node: NodeContext,
) -> Result:
    labels = classlabels_strings or classlabels_ints or [0, 1]
    features = (X.shape or (None,))[-1]
    count = len(intercepts or ()) or (
        len(coefficients) // features if isinstance(features, int) else len(labels)
    )
    table = np.asarray(coefficients, np.float32).reshape(count, -1)
    scores = named(node, _linear(X, table, intercepts), "scores", "float32")
    if count == 1:
        label = above(node, labels, scores, 0)
        return label, both(scores, post_transform, signed=False)
    return greatest(node, labels, scores), transformed(scores, post_transform)


# --- support vectors ---


def _alike(
    x: Expression, vectors: list[float], count: int, kernel: str, params: Any
) -> Expression:
    if len(vectors) % count:
        raise UnfitError(f"expected {count} vectors, got {len(vectors)} numbers")
    held = buffer(np.asarray(vectors, np.float32).reshape(count, -1), "vectors")
    gamma, coef0, degree = params or (0.0, 0.0, 0.0)
    options: dict[str, Any] = {"kernel": kernel}
    if kernel != "LINEAR":
        options["gamma"] = gamma
    if kernel in ("POLY", "SIGMOID"):
        options["coef0"] = coef0
    if kernel == "POLY":
        options["degree"] = int(degree) if degree == int(degree) else degree
    alike = call("svm_kernel", cast(operand(x), "float32"), held, **options)
    object.__setattr__(alike, "dtype", "float32")
    return alike


@onnx_op("SVMRegressor", domain=ML, traits=OWN_SHAPE)
def svm_regressor(
    X: Expression,
    *,
    coefficients: list[float] | None = None,
    kernel_params: list[float] | None = None,
    kernel_type: str = "LINEAR",
    n_supports: int = 0,
    one_class: int = 0,
    post_transform: str = "NONE",
    rho: list[float] | None = None,
    support_vectors: list[float] | None = None,
) -> Result:
    x = X
    if n_supports:
        vectors = support_vectors or []
        x = _alike(X, vectors, n_supports, kernel_type, kernel_params)
    y = _linear(x, np.asarray(coefficients, np.float32)[None], (rho or [0.0])[:1])
    if one_class:
        return call("where", BinOp(">", y, Literal(0)), _one(1), _one(-1))
    return transformed(y, post_transform)


def _one(value: float) -> Expression:
    return operand(Constant(np.asarray([value], np.float32)))


@onnx_op("SVMClassifier", domain=ML, traits=OWN_SHAPE)
def svm_classifier(
    X: Expression,
    *,
    classlabels_ints: list[int] | None = None,
    classlabels_strings: list[str] | None = None,
    coefficients: list[float] | None = None,
    kernel_params: list[float] | None = None,
    kernel_type: str = "LINEAR",
    post_transform: str = "NONE",
    prob_a: list[float] | None = None,
    prob_b: list[float] | None = None,
    rho: list[float] | None = None,
    support_vectors: list[float] | None = None,
    vectors_per_class: list[int] | None = None,
    node: NodeContext,
) -> Result:
    labels = classlabels_strings or classlabels_ints or [0]
    table, rho = np.asarray(coefficients, np.float32), rho or [0.0]
    if not vectors_per_class:
        bias = np.full(len(labels), rho[0])
        linear = _linear(X, table.reshape(len(labels), -1), bias)
        scores = named(node, linear, "scores", "float32")
        return greatest(node, labels, scores), transformed(scores, post_transform)
    count = sum(vectors_per_class)
    rows = _pairs(table.reshape(-1, count), vectors_per_class)
    alike = _alike(X, support_vectors or [], count, kernel_type, kernel_params)
    scores = named(node, _linear(alike, rows, rho), "scores", "float32")
    votes = call("pairwise_votes", scores, classes=len(labels))
    label = greatest(node, labels, votes)
    if prob_a:
        a, b = (np.asarray(p, np.float32) for p in (prob_a, prob_b))
        platt = BinOp("*", scores, buffer(-a, "prob_a"))
        wins = call("sigmoid", BinOp("-", platt, buffer(b, "prob_b")))
        shares = call("pairwise_coupling", wins, classes=len(labels))
        return label, transformed(shares, post_transform)
    if len(labels) == 2:
        return label, both(scores, post_transform, signed=post_transform == "NONE")
    return label, transformed(scores, post_transform)


def _pairs(coefficients: np.ndarray, per_class: list[int]) -> np.ndarray:
    """Coefficients of support vectors for pairs of classes: (pairs, vectors)"""
    ends = np.cumsum(per_class)
    owner = np.repeat(np.arange(len(per_class)), per_class)
    rows = []
    for i, j in combinations(range(len(ends)), 2):
        ours = np.where(owner == i, coefficients[j - 1], 0)
        rows.append(np.where(owner == j, coefficients[i], ours))
    return np.stack(rows).astype(np.float32)
