"""The losses as layers.

The docstring of each function says what it computes; the layer has its options.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from burnish._engine.arguments import check
from burnish.nn.core.layer import Layer
from burnish.nn.core.param import Buffer
from burnish.nn.losses import alignment, classification, ranking, regression
from burnish.tensor import Tensor


class Criterion(Layer):
    """A loss function whose options are given once; calls give it tensors.

    Weights are buffers: they are saved and move with the module, as in PyTorch.
    """

    function: ClassVar[Callable[..., Tensor]]
    __signature__: ClassVar[inspect.Signature]
    _wanted: ClassVar[dict[str, tuple[str, Any]]]

    def __init_subclass__(cls, function: Callable[..., Tensor]):
        super().__init_subclass__()
        cls.function = staticmethod(function)
        cls.__doc__ = function.__doc__
        options = [
            option
            for option in inspect.signature(function).parameters.values()
            if option.default is not option.empty
        ]
        cls.__signature__ = inspect.Signature(options)
        cls._wanted = {o.name: (str(o.annotation), o.default) for o in options}

    def __init__(self, *args: Any, **options: Any):
        given = self.__signature__.bind(*args, **options)
        check(type(self).__name__, self._wanted, given.arguments.items())
        given.apply_defaults()
        for name, value in given.arguments.items():
            if name in ("weight", "pos_weight") and value is not None:
                value = Buffer(value if hasattr(value, "dtype") else np.array(value))
            setattr(self, name, value)

    def forward(self, *tensors: Any, **named: Any) -> Tensor:
        options = {name: getattr(self, name) for name in self.__signature__.parameters}
        return self.function(*tensors, **options, **named)


class CrossEntropyLoss(Criterion, function=classification.cross_entropy): ...


class NLLLoss(Criterion, function=classification.nll_loss): ...


class BCELoss(Criterion, function=classification.binary_cross_entropy): ...


class BCEWithLogitsLoss(
    Criterion, function=classification.binary_cross_entropy_with_logits
): ...


class SoftMarginLoss(Criterion, function=classification.soft_margin_loss): ...


class MultiMarginLoss(Criterion, function=classification.multi_margin_loss): ...


class MultiLabelMarginLoss(
    Criterion, function=classification.multilabel_margin_loss
): ...


class MultiLabelSoftMarginLoss(
    Criterion, function=classification.multilabel_soft_margin_loss
): ...


class MSELoss(Criterion, function=regression.mse_loss): ...


class L1Loss(Criterion, function=regression.l1_loss): ...


class SmoothL1Loss(Criterion, function=regression.smooth_l1_loss): ...


class HuberLoss(Criterion, function=regression.huber_loss): ...


class KLDivLoss(Criterion, function=regression.kl_div): ...


class PoissonNLLLoss(Criterion, function=regression.poisson_nll_loss): ...


class GaussianNLLLoss(Criterion, function=regression.gaussian_nll_loss): ...


class MarginRankingLoss(Criterion, function=ranking.margin_ranking_loss): ...


class HingeEmbeddingLoss(Criterion, function=ranking.hinge_embedding_loss): ...


class CosineEmbeddingLoss(Criterion, function=ranking.cosine_embedding_loss): ...


class TripletMarginLoss(Criterion, function=ranking.triplet_margin_loss): ...


class TripletMarginWithDistanceLoss(
    Criterion, function=ranking.triplet_margin_with_distance_loss
): ...


class CTCLoss(Criterion, function=alignment.ctc_loss): ...


class RNNTLoss(Criterion, function=alignment.rnnt_loss): ...
