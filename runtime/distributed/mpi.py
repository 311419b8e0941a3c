"""Processes over MPI, on one machine or on many; mpi4py does the work."""

from __future__ import annotations

import sys
import time
from types import TracebackType
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
        if self.size > 1:
            sys.excepthook = self._abort

    def _abort(
        self,
        kind: type[BaseException],
        error: BaseException,
        trace: TracebackType | None,
    ) -> None:
        """End all processes with an error of one; the others would wait for ever."""
        sys.__excepthook__(kind, error, trace)
        sys.stderr.flush()
        time.sleep(0.2)  # mpiexec drops unread output when it is terminated
        self._communicator.Abort(1)

    def sum_array(self, array: Array) -> Array:
        total = np.empty_like(array)
        self._communicator.Allreduce(array, total)
        return total
