"""Layers, with PyTorch's parameter names and layouts.

    from burnish import nn
    nn.Linear(8, 32)
"""

from burnish.nn.linear import Linear
from burnish.nn.module import Module
from burnish.nn.param import Buffer, Param

__all__ = ["Buffer", "Linear", "Module", "Param"]
