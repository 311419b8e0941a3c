"""Operators' kernels for NVIDIA GPUs, and those of their gradients.

A kernel takes the common case: floats of one dtype. For others it gives None, and
the operator's plain value, which CuPy computes too, takes over. Importing a module of
this package registers its kernels.
"""

from burnish.ops._gpu import activation as activation
from burnish.ops._gpu import arithmetic as arithmetic
from burnish.ops._gpu import convolution as convolution
from burnish.ops._gpu import gradients as gradients
from burnish.ops._gpu import linear as linear
from burnish.ops._gpu import loss as loss
from burnish.ops._gpu import norm as norm
from burnish.ops._gpu import pool as pool
from burnish.ops._gpu import shape as shape
