"""Burnish's runtime: what generated models import. It needs NumPy and nothing else."""

from importlib import import_module as _import_module

from burnish import nn as nn
from burnish import ops as ops
from burnish._engine.closeness import check_closeness as check_closeness
from burnish._engine.display import set_printoptions as set_printoptions
from burnish._engine.lazy import Names as _Names
from burnish.backend import Device as Device
from burnish.ops._cpu.call import plan_with as _plan_with
from burnish.rng import seed as seed
from burnish.tensor import Tensor as Tensor

_present = "Device", "Tensor", "check_closeness", "nn", "ops", "seed"
with _Names(globals(), *_present, "set_printoptions"):
    from burnish.kernels import num_threads as num_threads
    from burnish.kernels import set_num_threads as set_num_threads
    from burnish.plan import compile as compile
    from burnish.profiling import profile as profile

__version__ = "0.1.0"
_plan_with(lambda: _import_module("burnish.plan.single").single)
