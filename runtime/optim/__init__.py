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
from burnish.optim.core.clip import ClipGlobalNorm, ClipNorm, ClipValue
from burnish.optim.core.gradients import GradientsAccumulator, GradientsParams
from burnish.optim.core.groups import ModuleOptimizer
from burnish.optim.core.optimizer import Optimizer
from burnish.optim.core.rates import Rates
from burnish.optim.rules.adam import Adam, Adamax, AdamW, NAdam, RAdam
from burnish.optim.rules.adan import Adan
from burnish.optim.rules.adaptive import Adadelta, Adagrad, RMSprop, Rprop
from burnish.optim.rules.lbfgs import LBFGS
from burnish.optim.rules.muon import Muon
from burnish.optim.rules.sgd import SGD
from burnish.optim.schedules.compose import Composed, ModuleSchedule, Sequential, Warmup
from burnish.optim.schedules.cycles import CosineRestarts, Cyclic, OneCycle
from burnish.optim.schedules.schedule import (
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
