"""Processes with a GPU each over NCCL."""

from __future__ import annotations

from burnish.backend import Array, Device
from burnish.backend.nccl import communicator
from burnish.distributed.group import Group


class NcclGroup(Group):
    """Process `rank` of `size`; arrays go from GPU to GPU.

    See `burnish.backend.nccl.communicator` for how the processes find one another.
    """

    def __init__(self, rank: int, size: int):
        self.rank, self.size = rank, size
        index, self._backend = communicator(rank, size)
        self.device = Device(f"cuda:{index}")

    def sum_array(self, array: Array) -> Array:
        held = self.device.xp.ascontiguousarray(self.device.put(array))
        total = self.device.xp.empty_like(held)
        self._backend.all_reduce(held, total)
        return total
