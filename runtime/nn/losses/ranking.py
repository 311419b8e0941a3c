"""Ranking and embedding losses: margins between similar and dissimilar pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burnish import ops
from burnish.errors import InputError
from burnish.nn.compared import is_equal
from burnish.nn.losses.checks import beside, mean, numbers, summed
from burnish.nn.losses.distance import pairwise_distance
from burnish.operator import explained
from burnish.tensor import Tensor

_TINY = 1e-12


@explained
def margin_ranking_loss(
    first: Tensor,
    second: Tensor,
    targets: Any,
    margin: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin - target * (first - second)); target 1: first shall be greater"""
    targets = numbers(first, targets)
    return mean(ops.relu(margin - targets * (first - second)), reduction)


@explained
def hinge_embedding_loss(
    distances: Tensor, targets: Any, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """The distance where target is 1, max(0, margin - distance) where it is -1"""
    alike = beside(distances, targets)
    far = ops.where(is_equal(alike, 1), 0, ops.relu(margin - distances))
    near = ops.where(is_equal(alike, -1), 0, distances)
    return mean(far + near, reduction)


@explained
def cosine_embedding_loss(
    first: Tensor,
    second: Tensor,
    targets: Any,
    margin: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """1 - cosine where target is 1, max(0, cosine - margin) where it is -1

    first and second (N, D) and targets (N,); or (D,) and a number.
    """
    alike = beside(first, targets)
    if first.shape != second.shape or alike.shape != first.shape[:-1]:
        raise InputError(
            f"cosine_embedding_loss: expected two tensors (N, D) and targets (N,), got "
            f"{first.shape}, {second.shape} and {alike.shape}"
        )
    squares = (summed(first * first, -1) + _TINY) * (
        summed(second * second, -1) + _TINY
    )
    cosine = summed(first * second, -1) / squares**0.5
    near = ops.where(is_equal(alike, 1), 1 - cosine, 0)
    far = ops.where(is_equal(alike, -1), ops.relu(cosine - margin), 0)
    return mean(near + far, reduction)


@explained
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin + |anchor - positive| - |anchor - negative|), p-norms of (N, D)

    swap: the negative's distance to the positive counts where it is smaller.
    """

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return pairwise_distance(a, b, p, eps)

    parts = (anchor, positive, negative)
    return triplet_margin_with_distance_loss(*parts, distance, margin, swap, reduction)


@explained
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` by any distance; without one `pairwise_distance`"""
    distance = distance_function or pairwise_distance
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise InputError(
            f"triplet_margin_loss: expected three tensors of one rank, got "
            f"{anchor.shape}, {positive.shape} and {negative.shape}"
        )
    far = distance(anchor, negative)
    if swap:
        far = ops.minimum(far, distance(positive, negative))
    return mean(ops.relu(margin + distance(anchor, positive) - far), reduction)
