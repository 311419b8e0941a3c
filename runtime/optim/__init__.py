"""Optimizers, gradient clipping and learning-rate schedules.

    optimizer = optim.Adam()
    gradients = loss.backward()
    optimizer.step(1e-3, model, gradients)

An optimizer does not hold the parameters or the learning rate: both are given to
`step`, so several optimizers can share one model. Arguments and their defaults are
PyTorch's.
"""

from typing import TYPE_CHECKING

from burnish.habits import missing
from burnish.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam
from burnish.optim.adan import Adan
from burnish.optim.adaptive import Adadelta, Adagrad, RMSprop, Rprop
from burnish.optim.clip import ClipGlobalNorm, ClipNorm, ClipValue
from burnish.optim.compose import Composed, ModuleSchedule, Sequential, Warmup
from burnish.optim.cycles import CosineRestarts, Cyclic, OneCycle
from burnish.optim.gradients import GradientsAccumulator, GradientsParams
from burnish.optim.groups import ModuleOptimizer
from burnish.optim.lbfgs import LBFGS
from burnish.optim.muon import Muon
from burnish.optim.optimizer import Optimizer
from burnish.optim.rates import Rates
from burnish.optim.schedule import (
    Constant,
    Cosine,
    Exponential,
    Factor,
    Linear,
    MultiStep,
    Noam,
    Polynomial,
    Schedule,
    Steps,
)
from burnish.optim.sgd import SGD

__all__ = [
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Adan",
    "ClipGlobalNorm",
    "ClipNorm",
    "ClipValue",
    "Composed",
    "Constant",
    "Cosine",
    "CosineRestarts",
    "Cyclic",
    "Exponential",
    "Factor",
    "GradientsAccumulator",
    "GradientsParams",
    "Linear",
    "ModuleOptimizer",
    "ModuleSchedule",
    "MultiStep",
    "Muon",
    "NAdam",
    "Noam",
    "OneCycle",
    "Optimizer",
    "Polynomial",
    "RAdam",
    "RMSprop",
    "Rates",
    "Rprop",
    "Schedule",
    "Sequential",
    "Steps",
    "Warmup",
]

if not TYPE_CHECKING:  # checkers know what there is

    def __getattr__(name):
        raise missing("burnish.optim", name, __all__)
