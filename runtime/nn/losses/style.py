"""The loss of style transfer. N batch, C channels, H, W the sizes of feature maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from burnish import ops
from burnish._engine.arguments import checked
from burnish.errors import InputError
from burnish.nn.core.module import Module
from burnish.nn.losses.checks import mean
from burnish.tensor import Tensor


def gram_matrix(features: Tensor) -> Tensor:
    """(N, C, *S) -> (N, C, C): how channels go together, wherever that is"""
    n, c = features.shape[:2]
    rows = features.reshape(n, c, -1)
    return rows @ rows.mT


class GramMatrixLoss(Module):
    """images (N, 3, H, W), images -> the distance of their styles

    features: makes a list of maps (N, C, *S) of images, one for each of layer_weights:
    the first convolutions of a VGG19's blocks, in the paper. Each map's part is the
    squared distance of the Gram matrices over (2 C H W) ** 2 (Gatys and others, 2016).
    """

    @checked
    def __init__(
        self,
        features: Callable[[Tensor], Sequence[Tensor]],
        layer_weights: Sequence[float],
        reduction: str = "mean",
    ):
        if min(layer_weights, default=0) < 0:
            raise InputError(
                f"GramMatrixLoss: expected no negative weights, got {layer_weights}"
            )
        self.features = features
        self.layer_weights = layer_weights
        self.reduction = reduction

    def forward(self, predictions: Tensor, targets: Tensor) -> Tensor:
        """Raises InputError for more or fewer maps than weights."""
        made, wanted = self.features(predictions), self.features(targets)
        if not len(made) == len(wanted) == len(self.layer_weights):
            raise InputError(
                f"GramMatrixLoss: expected a map for each of "
                f"{len(self.layer_weights)} weights, got {len(made)}"
            )
        total: Any = 0
        for one, other, weight in zip(made, wanted, self.layer_weights, strict=True):
            apart = gram_matrix(one) - gram_matrix(other)
            size = 2 * prod(one.shape[1:])
            part = ops.reduce_sum(apart * apart, axes=(1, 2))
            total = total + part * (weight / size**2)
        return mean(total, self.reduction)
