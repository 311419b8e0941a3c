"""Losses of numbers and of distributions: how far predictions are from targets."""

from __future__ import annotations

from math import inf, log, pi
from typing import Any

import numpy as np

from burnish import ops
from burnish.backend import namespace
from burnish.errors import InputError
from burnish.nn.compared import is_above
from burnish.nn.losses.checks import (
    check_reduction,
    difference,
    mean,
    numbers,
    same_shape,
    summed,
)
from burnish.operator import explained
from burnish.steps import step
from burnish.tensor import Tensor


@explained
def mse_loss(predictions: Tensor, targets: Any, reduction: str = "mean") -> Tensor:
    """(prediction - target) ** 2; two tensors of one shape"""
    return _huber("mse_loss", predictions, targets, reduction, inf, 2.0)


@explained
def l1_loss(predictions: Tensor, targets: Any, reduction: str = "mean") -> Tensor:
    """|prediction - target|; two tensors of one shape"""
    return mean(abs(difference("l1_loss", predictions, targets)), reduction)


@explained
def smooth_l1_loss(
    predictions: Tensor, targets: Any, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    """d ** 2 / (2 beta) where |d| < beta, |d| - beta / 2 elsewhere"""
    if beta == 0:
        return l1_loss(predictions, targets, reduction)
    return _huber("smooth_l1_loss", predictions, targets, reduction, beta, 1 / beta)


@explained
def huber_loss(
    predictions: Tensor, targets: Any, reduction: str = "mean", delta: float = 1.0
) -> Tensor:
    """d ** 2 / 2 where |d| <= delta, delta * (|d| - delta / 2) elsewhere"""
    return _huber("huber_loss", predictions, targets, reduction, delta, 1.0)


@explained
def kl_div(
    scores: Tensor, targets: Any, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    """target * (log(target) - score); scores are logarithms, targets too on demand

    reduction "batchmean" divides the sum by the number of examples.
    """
    targets = numbers(scores, targets)
    same_shape("kl_div", scores, targets)
    if log_target:
        losses = ops.exp(targets) * (targets - scores)
    else:
        losses = targets * (ops.log(targets + _impossible(targets)) - scores)
    if reduction == "batchmean":
        return summed(losses) * (1 / scores.shape[0])
    return mean(losses, reduction)


@explained
def poisson_nll_loss(
    predictions: Tensor,
    targets: Any,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """exp(prediction) - target * prediction; two tensors of one shape

    log_input False: prediction - target * log(prediction + eps). full: with Stirling's
    formula for log(target!) where target > 1.
    """
    targets = numbers(predictions, targets)
    same_shape("poisson_nll_loss", predictions, targets)
    if log_input:
        losses = ops.exp(predictions) - targets * predictions
    else:
        losses = predictions - targets * ops.log(predictions + eps)
    if full:
        counts = is_above(targets, 1)
        safe = ops.where(counts, targets, 1)
        factorial = safe * ops.log(safe) - safe + 0.5 * ops.log(2 * pi * safe)
        losses = losses + ops.where(counts, factorial, 0)
    return mean(losses, reduction)


@explained
def gaussian_nll_loss(
    predictions: Tensor,
    targets: Any,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """(log(var) + (prediction - target) ** 2 / var) / 2, variances held above eps

    var: a number, or a tensor that broadcasts, or one without the last axis. The bound
    does not stop its gradient. full: with the constant log(2 pi) / 2.
    """
    squares = (predictions - numbers(predictions, targets)) ** 2
    var = numbers(
        predictions, var if hasattr(var, "shape") else predictions.dtype.type(var)
    )
    if var.shape and var.shape == predictions.shape[:-1] != predictions.shape:
        var = var.reshape(*var.shape, 1)
    _check_var(var)
    var = var + (ops.clip(var, eps) - var).detach()
    losses = 0.5 * (ops.log(var) + squares / var)
    return mean(losses + 0.5 * log(2 * pi) if full else losses, reduction)


@step
def _impossible(targets: Any) -> Any:
    """1 where a target is 0, whose logarithm does not count, 0 elsewhere."""
    return namespace(targets).where(targets > 0, 0, 1).astype(targets.dtype)


@step
def _check_var(var: Any) -> None:
    if namespace(var) is np and (var < 0).any():
        raise InputError("gaussian_nll_loss: expected no negative var")


def _huber(
    where: str,
    predictions: Tensor,
    targets: Any,
    reduction: str,
    delta: float,
    scale: float,
) -> Tensor:
    targets = numbers(predictions, targets)
    same_shape(where, predictions, targets)
    total = check_reduction(reduction) != "none" and predictions.dtype != np.float16
    losses = ops.huber(predictions, targets, delta=delta, summed=total)
    if not total:
        losses = mean(losses, reduction)
    elif reduction == "mean":
        losses = losses / predictions.size
    return losses if scale == 1 else losses * scale
