"""Plans on a GPU: a program's calls, or a step of training, as CUDA graphs.

In: a captured program, or a step of training that is followed as it runs.
Out: a plan that is called as the program is, and text that lists its launches.
Invariant: numbers are those of the plain call; what cannot be captured runs eagerly.
"""

from burnish.backend.cuda.graphs.graphs import Room
from burnish.plan.cuda.plan import GraphPlan, Reshaped
from burnish.plan.cuda.shown import listed_on_gpu
from burnish.plan.cuda.stepping.home import Home
from burnish.plan.cuda.stepping.step import StepPlan
from burnish.plan.cuda.units.whole import WholeTape

__all__ = [
    "GraphPlan",
    "Home",
    "Reshaped",
    "Room",
    "StepPlan",
    "WholeTape",
    "listed_on_gpu",
]
