"""Process groups: rank and size that a launcher says in the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from burnish.backend import Device
from burnish.distributed.group import Group
from burnish.errors import DeviceError

_NAMES = [  # rank, size: MPICH and Slurm, Open MPI, torchrun
    ("PMI_RANK", "PMI_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("RANK", "WORLD_SIZE"),
]


class Place(NamedTuple):
    """This process among those that were started together."""

    rank: int
    size: int


def place(environment: Mapping[str, str] = os.environ) -> Place:
    """The rank and size that a launcher gave this process; 0 of 1 without one."""
    for rank, size in _NAMES:
        if rank in environment and size in environment:
            try:
                return Place(int(environment[rank]), int(environment[size]))
            except ValueError:
                raise DeviceError(
                    f"{rank}, {size}: expected whole numbers, got "
                    f"{environment[rank]!r}, {environment[size]!r}"
                ) from None
    return Place(0, 1)


def group(device: Device | str = "cpu") -> Group:
    """The processes that were started with this one; alone without a launcher.

    device: "cpu" goes through MPI, "cuda" through NCCL with one GPU a process.
    """
    rank, size = place()
    kind = Device(device).inner()
    if size == 1:
        return Group(kind)
    if kind.kind == "cpu":
        from burnish.distributed.mpi import MpiGroup

        return MpiGroup()
    from burnish.distributed.nccl import NcclGroup

    return NcclGroup(rank, size)
