"""Optimizers, gradient clipping and learning-rate schedules.

    optimizer = optim.Adam()
    gradients = loss.backward()
    optimizer.step(1e-3, model, gradients)

An optimizer does not hold the parameters or the learning rate: both are given to
`step`, so several optimizers can share one model. Defaults are PyTorch's.
"""

from burnish.optim.adam import Adam, AdamW
from burnish.optim.adaptive import Adagrad, RMSprop
from burnish.optim.clip import ClipGlobalNorm, ClipNorm, ClipValue
from burnish.optim.gradients import GradientsAccumulator, GradientsParams
from burnish.optim.optimizer import Optimizer
from burnish.optim.schedule import (
    Constant,
    Cosine,
    Exponential,
    Linear,
    Noam,
    Schedule,
    Steps,
)
from burnish.optim.sgd import SGD

__all__ = [
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "ClipGlobalNorm",
    "ClipNorm",
    "ClipValue",
    "Constant",
    "Cosine",
    "Exponential",
    "GradientsAccumulator",
    "GradientsParams",
    "Linear",
    "Noam",
    "Optimizer",
    "RMSprop",
    "Schedule",
    "Steps",
]
