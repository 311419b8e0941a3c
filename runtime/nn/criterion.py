"""The losses as layers; what each computes is said in `burnish.nn.loss`."""

from __future__ import annotations

from typing import Any

from burnish.nn.layer import Layer
from burnish.nn.loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)
from burnish.tensor import Tensor


class CrossEntropyLoss(Layer):
    __doc__ = cross_entropy.__doc__

    def __init__(
        self,
        weight: Any = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ):
        self.weight = weight
        self.ignore_index = ignore_index
        self.reduction = reduction
        self.label_smoothing = label_smoothing

    def forward(self, logits: Tensor, targets: Any) -> Tensor:
        options = (self.weight, self.ignore_index, self.reduction, self.label_smoothing)
        return cross_entropy(logits, targets, *options)


class NLLLoss(Layer):
    __doc__ = nll_loss.__doc__

    def __init__(
        self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean"
    ):
        self.weight = weight
        self.ignore_index = ignore_index
        self.reduction = reduction

    def forward(self, scores: Tensor, targets: Any) -> Tensor:
        options = (self.weight, self.ignore_index, self.reduction)
        return nll_loss(scores, targets, *options)


class MSELoss(Layer):
    __doc__ = mse_loss.__doc__

    def __init__(self, reduction: str = "mean"):
        self.reduction = reduction

    def forward(self, predictions: Tensor, targets: Any) -> Tensor:
        return mse_loss(predictions, targets, self.reduction)


class L1Loss(Layer):
    __doc__ = l1_loss.__doc__

    def __init__(self, reduction: str = "mean"):
        self.reduction = reduction

    def forward(self, predictions: Tensor, targets: Any) -> Tensor:
        return l1_loss(predictions, targets, self.reduction)


class SmoothL1Loss(Layer):
    __doc__ = smooth_l1_loss.__doc__

    def __init__(self, reduction: str = "mean", beta: float = 1.0):
        self.reduction = reduction
        self.beta = beta

    def forward(self, predictions: Tensor, targets: Any) -> Tensor:
        return smooth_l1_loss(predictions, targets, self.reduction, self.beta)


class HuberLoss(Layer):
    __doc__ = huber_loss.__doc__

    def __init__(self, reduction: str = "mean", delta: float = 1.0):
        self.reduction = reduction
        self.delta = delta

    def forward(self, predictions: Tensor, targets: Any) -> Tensor:
        return huber_loss(predictions, targets, self.reduction, self.delta)


class BCELoss(Layer):
    __doc__ = binary_cross_entropy.__doc__

    def __init__(self, weight: Any = None, reduction: str = "mean"):
        self.weight = weight
        self.reduction = reduction

    def forward(self, probabilities: Tensor, targets: Any) -> Tensor:
        return binary_cross_entropy(probabilities, targets, self.weight, self.reduction)


class BCEWithLogitsLoss(Layer):
    __doc__ = binary_cross_entropy_with_logits.__doc__

    def __init__(
        self, weight: Any = None, reduction: str = "mean", pos_weight: Any = None
    ):
        self.weight = weight
        self.reduction = reduction
        self.pos_weight = pos_weight

    def forward(self, logits: Tensor, targets: Any) -> Tensor:
        options = (self.weight, self.reduction, self.pos_weight)
        return binary_cross_entropy_with_logits(logits, targets, *options)


class KLDivLoss(Layer):
    __doc__ = kl_div.__doc__

    def __init__(self, reduction: str = "mean", log_target: bool = False):
        self.reduction = reduction
        self.log_target = log_target

    def forward(self, scores: Tensor, targets: Any) -> Tensor:
        return kl_div(scores, targets, self.reduction, self.log_target)
