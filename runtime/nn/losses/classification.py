"""Losses of classes: which one, or which of many. N batch, C classes, *S any axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish import ops
from burnish.backend import namespace
from burnish.backend.cuda.norms import loss as kernels
from burnish.errors import InputError
from burnish.nn.losses.checks import (
    beside,
    check_reduction,
    mean,
    numbers,
    reduced,
    same_shape,
    summed,
    weighted,
    weights,
)
from burnish.operator import explained
from burnish.steps import step
from burnish.tensor import Tensor


@explained
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
    targets = beside(logits, targets)
    axis = 1 if len(logits.shape) > 1 else 0
    if _is_float(targets):
        same_shape("cross_entropy", logits, targets)
        wanted = targets * (1 - label_smoothing) + label_smoothing / logits.shape[axis]
        if weight is not None:
            wanted = wanted * _along(_for_classes(logits, weight, axis), logits, axis)
        losses = -summed(wanted * ops.log_softmax(logits, axis=axis), axis)
        return mean(losses, reduction)
    if label_smoothing or not targets.size:  # the mean of none is not a number
        each = scores = ops.log_softmax(logits, axis=axis)
        chosen, shares, _ = target_classes(
            *_table_of(scores, targets, weight, axis),
            classes=scores.shape[axis],
            dtype=_wide(scores.dtype),
            ignore_index=ignore_index,
        )
        found = ops.softmax_cross_entropy(scores, chosen, shares, axis=axis)[0]
        if weight is not None:
            each = scores * _along(_for_classes(logits, weight, axis), logits, axis)
        kept = (targets != ignore_index).astype(scores.dtype)
        spread = -summed(each, axis) * kept / logits.shape[axis]
        losses = found * (1 - label_smoothing) + spread * label_smoothing
        return reduced(losses, reduction, lambda total: _shared(total, shares))
    total = check_reduction(reduction) != "none"
    chosen, shares, blank = target_classes(
        *_table_of(logits, targets, weight, axis),
        classes=logits.shape[axis],
        dtype=_wide(logits.dtype),
        ignore_index=ignore_index,
        mean=reduction == "mean",
    )
    return ops.softmax_cross_entropy(
        logits, chosen, shares, blank, axis=axis, summed=total
    )[0]


@explained
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
        scores, beside(scores, targets), weight, ignore_index, axis
    )
    return reduced(losses, reduction, lambda total: _shared(total, shares))


@explained
def binary_cross_entropy(
    probabilities: Tensor,
    targets: Any,
    weight: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """-(t * log(p) + (1 - t) * log(1 - p)), logarithms held above -100

    label_smoothing: brings targets that much nearer to 1/2.
    """
    targets = _smoothed(numbers(probabilities, targets), label_smoothing)
    same_shape("binary_cross_entropy", probabilities, targets)
    losses = ops.elementwise_cross_entropy(probabilities, targets)
    return mean(weighted(losses, weight), reduction)


@explained
def binary_cross_entropy_with_logits(
    logits: Tensor,
    targets: Any,
    weight: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
    label_smoothing: float = 0.0,
) -> Tensor:
    """`binary_cross_entropy` of sigmoid(logits), without overflow

    pos_weight: how much more a positive target weighs.
    """
    targets = _smoothed(numbers(logits, targets), label_smoothing)
    same_shape("binary_cross_entropy_with_logits", logits, targets)
    if pos_weight is None:
        losses = logits * (1 - targets) + ops.softplus(-logits)
    else:
        factor = targets * (weights(logits, pos_weight) - 1) + 1
        losses = logits * (1 - targets) + factor * ops.softplus(-logits)
    return mean(weighted(losses, weight), reduction)


@explained
def soft_margin_loss(logits: Tensor, targets: Any, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target * logit)); targets 1 or -1, the shape of the logits"""
    targets = numbers(logits, targets)
    same_shape("soft_margin_loss", logits, targets)
    return mean(ops.softplus(-targets * logits), reduction)


@explained
def multilabel_soft_margin_loss(
    logits: Tensor, targets: Any, weight: Any = None, reduction: str = "mean"
) -> Tensor:
    """`binary_cross_entropy_with_logits`, its mean over the classes: (N, C) -> (N,)"""
    losses = binary_cross_entropy_with_logits(logits, targets, weight, "none")
    return mean(losses.mean(axis=-1), reduction)


@explained
def multi_margin_loss(
    scores: Tensor,
    targets: Any,
    p: int = 1,
    margin: float = 1.0,
    weight: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """scores (N, C) or (C,), targets classes (N,) or one

    The mean over the classes of max(0, margin - right score + score) ** p, the right
    class left out; weight: one number for each class.
    """
    if p not in (1, 2):
        raise InputError(f"multi_margin_loss: expected p of 1 or 2, got {p}")
    targets = beside(scores, targets)
    right, shares = _picked(scores, targets, weight, None, len(scores.shape) - 1)
    classes = scores.shape[-1]
    others, safe = _rivals(targets, shares, classes=classes)
    gaps = ops.relu(margin + (right / safe).reshape(*right.shape, 1) + scores)
    gaps = (gaps if p == 1 else gaps * gaps) * others
    return mean(summed(gaps, -1) * (shares / classes), reduction)


@explained
def multilabel_margin_loss(
    scores: Tensor, targets: Any, reduction: str = "mean"
) -> Tensor:
    """scores (N, C) or (C,); targets of that shape: classes, and -1 behind the last

    The sum of max(0, 1 - right score + wrong score) over all pairs, divided by C.
    """
    targets = beside(scores, targets)
    same_shape("multilabel_margin_loss", scores, targets)
    classes = scores.shape[-1]
    places, pairs = _listed(targets, classes=classes)
    right = ops.take_along_axis(scores, places, axis=-1)
    gaps = ops.relu(1 - right.reshape(*right.shape, 1) + scores[..., None, :])
    pairs = pairs.astype(scores.dtype)
    return mean(ops.reduce_sum(gaps * pairs, axes=(-2, -1)) / classes, reduction)


@step
def _rivals(targets: Any, shares: Any, *, classes: int) -> tuple[Any, Any]:
    """1 for each class that is not the target, (N, C), and shares to divide by."""
    xp = namespace(targets)
    others = xp.arange(classes) != targets[..., None]
    return others.astype(shares.dtype), xp.where(shares == 0, 1, shares)


@step
def _listed(chosen: Any, *, classes: int) -> tuple[Any, Any]:
    """Classes up to the first -1, and which goes with which class that is not there."""
    xp = namespace(chosen)
    listed = xp.cumsum(chosen < 0, axis=-1) == 0
    if xp is np and listed.any() and chosen[listed].max() >= classes:
        raise InputError(
            f"multilabel_margin_loss: expected classes from 0 to {classes - 1}, or -1, "
            f"got {chosen[listed].max()}"
        )
    places = xp.where(listed, chosen, 0)
    hits = (places[..., None] == xp.arange(classes)) & listed[..., None]
    wrong = ~hits.any(axis=-2)
    return places, listed[..., None] & wrong[..., None, :]


def _picked(
    scores: Tensor, targets: Tensor, weight: Any, ignore_index: int | None, axis: int
) -> tuple[Tensor, Any]:
    """The negative score of each target class times its weight; and those weights."""
    chosen, shares, _ = target_classes(
        *_table_of(scores, targets, weight, axis),
        classes=scores.shape[axis],
        dtype=scores.dtype,
        ignore_index=ignore_index,
    )
    places = ops.unsqueeze(chosen, axis=axis)
    found = ops.take_along_axis(scores, places, axis=axis).reshape(targets.shape)
    return -found * shares, shares


def _table_of(
    scores: Tensor, targets: Tensor, weight: Any, axis: int
) -> tuple[Any, Any]:
    """Targets and the classes' weights; raises InputError for other shapes."""
    shape = scores.shape
    expected = shape[:axis] + shape[axis + 1 :]
    if targets.shape != expected:
        raise InputError(
            f"loss: expected targets {expected} of classes for scores {shape}, "
            f"got {targets.shape}"
        )
    return targets, None if weight is None else _for_classes(scores, weight, axis)


@step
def target_classes(
    targets: Any,
    weight: Any,
    *,
    classes: int,
    dtype: Any,
    ignore_index: int | None,
    mean: bool = False,
) -> tuple[Any, Any, Any]:
    """The class of each target, and its weight: 0 and 0 for ignored ones.

    mean: weights divided by their sum. And what belongs to the sum of losses: not a
    number for the mean of none, else 0. On a GPU, which nobody waits for, a target that
    is no class makes the loss NaN; on a CPU it is an error.
    """
    xp = np if type(targets) is np.ndarray else namespace(targets)
    wide = _wide(dtype)
    if xp is not np and xp.__name__ == "cupy":
        given = (targets, weight, classes, np.dtype(wide), ignore_index, mean)
        if (found := kernels.targets(*given)) is not None:
            return found
    targets = targets.astype(np.int64, copy=False)
    if weight is None and _are_classes(targets, classes, ignore_index):
        shares = xp.empty(targets.shape, dtype)
        shares.fill(1 / targets.size if mean else 1)
        return targets, shares, dtype.type(0)
    low, high = (targets.min(), targets.max()) if targets.size else (0, -1)
    if ignore_index is not None and low <= ignore_index <= high:
        kept = xp.asarray(targets != ignore_index)
        targets, shares = xp.where(kept, targets, 0), kept.astype(wide)
        low, high = targets.min(), targets.max()
    else:
        shares = xp.ones(targets.shape, wide)
    if targets.size and (low < 0 or high >= classes):
        raise InputError(
            f"loss: expected classes from 0 to {classes - 1}"
            f"{'' if ignore_index is None else f' or {ignore_index}'}, "
            f"got {low} to {high}"
        )
    if weight is not None:
        shares = shares * weight[targets].astype(wide)
    blank = 0.0
    if mean:
        count = float(shares.sum())
        shares, blank = (shares / count, 0.0) if count else (shares, np.nan)
    return targets, shares.astype(dtype, copy=False), dtype.type(blank)


def _for_classes(scores: Tensor, weight: Any, axis: int) -> Tensor:
    """One weight for each class; raises InputError for more or fewer."""
    found, classes = weights(scores, weight), scores.shape[axis]
    if found.shape != (classes,):
        raise InputError(
            f"loss: expected a weight ({classes},) for scores {scores.shape}, "
            f"got {found.shape}"
        )
    return found


def _shared(total: Tensor, shares: Any) -> Tensor:
    """The sum of losses over that of their weights; NaN for none, of gradient 0."""
    count = summed(beside(total, shares))
    none, kind = count == 0, total.dtype.type
    blank = ops.where(none, kind(np.nan), kind(0))
    shared = total / (count + none.astype(count.dtype))
    return ops.cast(shared, dtype=total.dtype) + blank


def _are_classes(targets: Any, classes: int, ignore_index: int | None) -> bool:
    """Whether all targets are classes and none is ignored, as far as one look tells."""
    if ignore_index is not None and 0 <= ignore_index < classes:
        return False
    if not targets.size or targets.dtype.kind != "i":
        return False
    unsigned = targets.view(_UNSIGNED[targets.itemsize])  # negative ones are great
    return bool(np.maximum.reduce(unsigned, None) < classes)


_UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def _wide(dtype: Any) -> Any:
    """Single precision for halves, which count too few."""
    return dtype if dtype.itemsize > 2 else np.dtype(np.float32)


def _is_float(x: Tensor) -> bool:
    return bool(x.dtype.kind == "f")


def _along(weight: Tensor, x: Tensor, axis: int) -> Tensor:
    """(C,) seen beside x, whose classes are on `axis`"""
    return weight.reshape(-1, *(1 for _ in x.shape[axis + 1 :]))


def _smoothed(targets: Tensor, label_smoothing: float) -> Tensor:
    if not label_smoothing:
        return targets
    return targets * (1 - label_smoothing) + label_smoothing / 2
