"""Losses: how far predictions are from targets.

Layers with the same options are in `burnish.nn.criterion`. reduction: "mean", "sum",
or "none" for one loss an element (or an example). N batch, C classes, *S any axes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burnish import ops
from burnish.errors import InputError
from burnish.tensor import Tensor


def cross_entropy(
    logits: Tensor,
    targets: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """logits (N, C, *S) or (C,); targets classes (N, *S), or probabilities (N, C, *S)

    weight: one number for each class. "mean" divides by the weights of the targets, or
    by the number of examples when the targets are probabilities.
    """
    targets = _beside(logits, targets)
    axis = 1 if len(logits.shape) > 1 else 0
    classes = logits.shape[axis]
    scores = ops.log_softmax(logits, axis=axis)
    if _is_float(targets):
        _same_shape("cross_entropy", logits, targets)
        wanted = targets * (1 - label_smoothing) + label_smoothing / classes
        if weight is not None:
            wanted = wanted * _along(_beside(logits, weight), logits, axis)
        losses = -_sum(wanted * scores, axis)
        count = losses.data.size
        return _reduced(losses, reduction, lambda total: total * (1 / count))
    losses, shares = _picked(scores, targets, weight, ignore_index, axis)
    if label_smoothing:
        each = scores
        if weight is not None:
            each = scores * _along(_beside(logits, weight), logits, axis)
        kept = _beside(logits, (targets.data != ignore_index).astype(scores.dtype))
        spread = -_sum(each, axis) * kept
        losses = losses * (1 - label_smoothing) + spread * (label_smoothing / classes)
    return _reduced(losses, reduction, lambda total: total / float(shares.sum()))


def nll_loss(
    scores: Tensor,
    targets: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """scores (N, C, *S) log-probabilities, targets classes (N, *S)"""
    axis = 1 if len(scores.shape) > 1 else 0
    losses, shares = _picked(
        scores, _beside(scores, targets), weight, ignore_index, axis
    )
    return _reduced(losses, reduction, lambda total: total / float(shares.sum()))


def mse_loss(predictions: Tensor, targets: Any, reduction: str = "mean") -> Tensor:
    """(prediction - target) ** 2; two tensors of one shape"""
    difference = _difference("mse_loss", predictions, targets)
    return _mean(difference * difference, reduction)


def l1_loss(predictions: Tensor, targets: Any, reduction: str = "mean") -> Tensor:
    """|prediction - target|; two tensors of one shape"""
    return _mean(abs(_difference("l1_loss", predictions, targets)), reduction)


def smooth_l1_loss(
    predictions: Tensor, targets: Any, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    """d ** 2 / (2 beta) where |d| < beta, |d| - beta / 2 elsewhere"""
    if beta == 0:
        return l1_loss(predictions, targets, reduction)
    return _huber("smooth_l1_loss", predictions, targets, reduction, beta, 1 / beta)


def huber_loss(
    predictions: Tensor, targets: Any, reduction: str = "mean", delta: float = 1.0
) -> Tensor:
    """d ** 2 / 2 where |d| <= delta, delta * (|d| - delta / 2) elsewhere"""
    return _huber("huber_loss", predictions, targets, reduction, delta, 1.0)


def binary_cross_entropy(
    probabilities: Tensor, targets: Any, weight: Any = None, reduction: str = "mean"
) -> Tensor:
    """-(t * log(p) + (1 - t) * log(1 - p)), logarithms held above -100"""
    targets = _beside(probabilities, targets)
    _same_shape("binary_cross_entropy", probabilities, targets)
    losses = ops.binary_cross_entropy(probabilities, targets)
    return _mean(_weighted(losses, weight), reduction)


def binary_cross_entropy_with_logits(
    logits: Tensor,
    targets: Any,
    weight: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Tensor:
    """`binary_cross_entropy` of sigmoid(logits), without overflow

    pos_weight: how much more a positive target weighs.
    """
    targets = _beside(logits, targets)
    _same_shape("binary_cross_entropy_with_logits", logits, targets)
    if pos_weight is None:
        losses = logits * (1 - targets) + ops.softplus(-logits)
    else:
        factor = targets * (_beside(logits, pos_weight) - 1) + 1
        losses = logits * (1 - targets) + factor * ops.softplus(-logits)
    return _mean(_weighted(losses, weight), reduction)


def kl_div(
    scores: Tensor, targets: Any, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    """target * (log(target) - score); scores are logarithms, targets too on demand

    reduction "batchmean" divides the sum by the number of examples.
    """
    targets = _beside(scores, targets)
    _same_shape("kl_div", scores, targets)
    if log_target:
        losses = ops.exp(targets) * (targets - scores)
    else:
        xp = scores.device.xp
        certain = xp.where(targets.data > 0, 0, 1).astype(targets.dtype)
        losses = targets * (ops.log(targets + certain) - scores)
    if reduction == "batchmean":
        return _sum(losses, None) * (1 / scores.shape[0])
    return _mean(losses, reduction)


def _picked(
    scores: Tensor, targets: Tensor, weight: Any, ignore_index: int, axis: int
) -> tuple[Tensor, Any]:
    """The negative score of each target class times its weight; and those weights."""
    xp = scores.device.xp
    classes = scores.shape[axis]
    expected = scores.shape[:axis] + scores.shape[axis + 1 :]
    if targets.shape != expected:
        raise InputError(
            f"loss: expected targets {expected} of classes for scores {scores.shape}, "
            f"got {targets.shape}"
        )
    chosen = targets.data
    kept = chosen != ignore_index
    chosen = xp.where(kept, chosen, 0)
    if chosen.size and (chosen.min() < 0 or chosen.max() >= classes):
        raise InputError(
            f"loss: expected classes from 0 to {classes - 1} or {ignore_index}, "
            f"got {chosen.min()} to {chosen.max()}"
        )
    shares = kept.astype(scores.dtype)
    if weight is not None:
        shares = shares * _beside(scores, weight).data[chosen]
    places = Tensor(xp.expand_dims(chosen, axis), device=scores.device)
    found = ops.take_along_axis(scores, places, axis=axis).reshape(expected)
    return -found * shares, shares


def _huber(
    where: str,
    predictions: Tensor,
    targets: Any,
    reduction: str,
    delta: float,
    scale: float,
) -> Tensor:
    difference = _difference(where, predictions, targets)
    size = abs(difference)
    near = ops.clip(size, None, delta)
    return _mean((near * size - near * near * 0.5) * scale, reduction)


def _difference(where: str, predictions: Tensor, targets: Any) -> Tensor:
    targets = _beside(predictions, targets)
    _same_shape(where, predictions, targets)
    return predictions - targets


def _same_shape(where: str, predictions: Tensor, targets: Tensor) -> None:
    if predictions.shape != targets.shape:
        raise InputError(
            f"{where}: expected targets with the shape of the predictions "
            f"{predictions.shape}, got {targets.shape}"
        )


def _beside(like: Tensor, value: Any) -> Tensor:
    """`value` as a tensor on `like`'s device."""
    return value if isinstance(value, Tensor) else Tensor(value, device=like.device)


def _is_float(x: Tensor) -> bool:
    return bool(x.dtype.kind == "f")


def _along(weight: Tensor, x: Tensor, axis: int) -> Tensor:
    """(C,) seen beside x, whose classes are on `axis`"""
    return weight.reshape(-1, *(1 for _ in x.shape[axis + 1 :]))


def _sum(x: Tensor, axis: int | None) -> Tensor:
    return ops.reduce_sum(x, axes=axis)


def _weighted(losses: Tensor, weight: Any) -> Tensor:
    return losses if weight is None else losses * _beside(losses, weight)


def _mean(losses: Tensor, reduction: str) -> Tensor:
    count = losses.data.size
    return _reduced(losses, reduction, lambda total: total * (1 / count))


def _reduced(
    losses: Tensor, reduction: str, mean: Callable[[Tensor], Tensor]
) -> Tensor:
    if reduction == "none":
        return losses
    if reduction not in ("mean", "sum"):
        raise InputError(
            f"loss: expected reduction 'mean', 'sum' or 'none', got {reduction!r}"
        )
    total = _sum(losses, None)
    return mean(total) if reduction == "mean" else total
