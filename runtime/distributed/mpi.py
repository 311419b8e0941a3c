"""Processes over MPI, on one machine or on many; mpi4py does the work."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend import Array, Device
from burnish.distributed.group import Group
from burnish.errors import DeviceError


class MpiGroup(Group):
    """The processes that `mpirun` started, computing on their hosts."""

    def __init__(self, communicator: Any = None):
        try:
            from mpi4py import MPI
        except ImportError:
            raise DeviceError(
                "training over MPI needs mpi4py: pip install 'burnish[mpi]'"
            ) from None
        self._communicator = communicator or MPI.COMM_WORLD
        self.rank = self._communicator.Get_rank()
        self.size = self._communicator.Get_size()
        self.device = Device("cpu")

    def sum_array(self, array: Array) -> Array:
        total = np.empty_like(array)
        self._communicator.Allreduce(array, total)
        return total
