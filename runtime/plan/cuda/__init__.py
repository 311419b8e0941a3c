"""Plans on a GPU: a program's calls, or a step of training, as CUDA graphs."""

from burnish.backend.cuda.graphs import Room
from burnish.plan.cuda.plan import GraphPlan, Reshaped
from burnish.plan.cuda.shown import listed_on_gpu
from burnish.plan.cuda.steps import Steps
from burnish.plan.cuda.whole import WholeTape

__all__ = [
    "GraphPlan",
    "Reshaped",
    "Room",
    "Steps",
    "WholeTape",
    "listed_on_gpu",
]
