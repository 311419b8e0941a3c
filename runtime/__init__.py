"""Burnish's runtime: what generated models import. It needs NumPy and nothing else."""

from importlib import import_module
from typing import TYPE_CHECKING

from burnish import nn, ops
from burnish._engine.closeness import check_closeness
from burnish._engine.display import set_printoptions
from burnish.backend import Device
from burnish.habits import missing
from burnish.ops._cpu.call import plan_with as _plan_with
from burnish.rng import seed
from burnish.tensor import Tensor

if TYPE_CHECKING:  # imported when they are asked for
    from burnish.kernels import num_threads, set_num_threads
    from burnish.plan import compile
    from burnish.profiling import profile

__version__ = "0.1.0"
__all__ = [
    "Device",
    "Tensor",
    "check_closeness",
    "compile",
    "nn",
    "num_threads",
    "ops",
    "profile",
    "seed",
    "set_num_threads",
    "set_printoptions",
]
_LATE = {
    "compile": "plan",
    "num_threads": "kernels",
    "profile": "profiling",
    "set_num_threads": "kernels",
}
_plan_with(lambda: import_module("burnish.plan.single").single)

if not TYPE_CHECKING:  # checkers know what there is

    def __getattr__(name):
        if name in _LATE:
            made = getattr(import_module(f"burnish.{_LATE[name]}"), name)
            return globals().setdefault(name, made)
        raise missing("burnish", name, __all__)
