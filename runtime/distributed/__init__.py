"""Data-parallel training over processes.

workers = distributed.group()            # those that mpirun has started
Learner(model, ..., workers=workers)
"""

from burnish.distributed.group import Group
from burnish.distributed.launch import group, place

__all__ = ["Group", "group", "place"]
