"""Shared parts of losses: checks of targets, weights, reductions.

reduction: "mean", "sum", or "none" for one loss an element (or an example).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burnish import ops
from burnish.errors import InputError
from burnish.tensor import Tensor


def difference(where: str, predictions: Tensor, targets: Any) -> Tensor:
    """prediction - target; raises InputError unless they have one shape."""
    targets = numbers(predictions, targets)
    same_shape(where, predictions, targets)
    return predictions - targets


def same_shape(where: str, predictions: Tensor, targets: Tensor) -> None:
    """Raises InputError unless both have one shape."""
    if predictions.shape != targets.shape:
        raise InputError(
            f"{where}: expected targets with the shape of the predictions "
            f"{predictions.shape}, got {targets.shape}"
        )


def beside(like: Tensor, value: Any) -> Tensor:
    """`value` as a tensor on `like`'s device."""
    return value if isinstance(value, Tensor) else Tensor(value, device=like.device)


def numbers(like: Tensor, value: Any) -> Tensor:
    """`value` beside `like`; integers and booleans in its dtype, lest they widen it."""
    found = beside(like, value)
    return found if found.dtype.kind == "f" else ops.cast(found, dtype=like.dtype)


def weights(like: Tensor, value: Any) -> Tensor:
    """`value` beside `like`, in its dtype."""
    return ops.cast(beside(like, value), dtype=like.dtype)


def summed(x: Tensor, axis: int | None = None) -> Tensor:
    """The sum along an axis, or of everything."""
    return ops.reduce_sum(x, axes=axis)


def weighted(losses: Tensor, weight: Any) -> Tensor:
    """Losses times their weights, if there are any."""
    return losses if weight is None else losses * weights(losses, weight)


def mean(losses: Tensor, reduction: str) -> Tensor:
    """Losses reduced; "mean" divides by their number."""
    if losses.dtype == np.float16 and reduction == "mean":  # sums soon pass 65504
        return ops.reduce_mean(losses)
    count = losses.size
    return reduced(losses, reduction, lambda total: total / count)


def reduced(losses: Tensor, reduction: str, mean: Callable[[Tensor], Tensor]) -> Tensor:
    """Losses reduced; `mean` makes the mean of their sum."""
    if check_reduction(reduction) == "none":
        return losses
    total = summed(losses)
    return mean(total) if reduction == "mean" else total


def check_reduction(reduction: str) -> str:
    """The reduction; raises InputError unless it is one."""
    if reduction not in ("mean", "sum", "none"):
        raise InputError(
            f"loss: expected reduction 'mean', 'sum' or 'none', got {reduction!r}"
        )
    return reduction
