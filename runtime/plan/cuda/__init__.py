"""Plans on a GPU: a program's calls, or a step of training, as CUDA graphs."""

from burnish.backend.cuda.graphs import Room
from burnish.plan.cuda.home import Home
from burnish.plan.cuda.plan import GraphPlan, Reshaped
from burnish.plan.cuda.shown import listed_on_gpu
from burnish.plan.cuda.step import StepPlan
from burnish.plan.cuda.whole import WholeTape

__all__ = [
    "GraphPlan",
    "Home",
    "Reshaped",
    "Room",
    "StepPlan",
    "WholeTape",
    "listed_on_gpu",
]
