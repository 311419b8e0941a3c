"""Burnish's runtime: what generated models import. It needs NumPy and nothing else."""

from typing import TYPE_CHECKING

from burnish import nn, ops
from burnish.backend import Device
from burnish.closeness import check_closeness
from burnish.display import set_printoptions
from burnish.habits import missing
from burnish.rng import seed
from burnish.tensor import Tensor

__version__ = "0.1.0"
__all__ = [
    "Device",
    "Tensor",
    "check_closeness",
    "nn",
    "ops",
    "seed",
    "set_printoptions",
]

if not TYPE_CHECKING:  # checkers know what there is

    def __getattr__(name):
        if name in ops.__all__:
            raise AttributeError(f"burnish has no {name!r}: write ops.{name}")
        raise missing("burnish", name, __all__)
