"""NCCL between processes with a GPU each, through cupyx.distributed."""

from __future__ import annotations

import os
from typing import Any

from burnish.backend.namespace import library
from burnish.errors import DeviceError


def communicator(rank: int, size: int) -> tuple[int, Any]:
    """This process's GPU, and what sums arrays over all processes' GPUs.

    The processes of a machine take its GPUs in turn (LOCAL_RANK or MPI_LOCALRANKID,
    else the rank). They find one another at MASTER_ADDR and MASTER_PORT, by default
    127.0.0.1 and 13333, within a trusted network. Raises DeviceError when there are
    too few GPUs.
    """
    cupy = library("cuda")
    import cupyx.distributed

    names = ("LOCAL_RANK", "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK")
    local = next((int(os.environ[name]) for name in names if name in os.environ), rank)
    count = cupy.cuda.runtime.getDeviceCount()
    if local >= count:
        raise DeviceError(
            f"training over NCCL: expected one GPU a process, process {rank} is "
            f"number {local + 1} on a machine with {count}"
        )
    cupy.cuda.Device(local).use()
    backend = cupyx.distributed.init_process_group(
        size,
        rank,
        host=os.environ.get("MASTER_ADDR", "127.0.0.1"),
        port=int(os.environ.get("MASTER_PORT", "13333")),
    )
    return local, backend
