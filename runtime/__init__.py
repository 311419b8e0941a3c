"""Burnish's runtime: what generated models import. It needs NumPy and nothing else."""

from burnish import nn, ops
from burnish.backend import Device
from burnish.closeness import check_closeness
from burnish.display import set_printoptions
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
