"""NCCL between processes with a GPU each: how they meet, and sums of their arrays."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from typing import Any

from burnish.backend.namespace import library
from burnish.errors import DeviceError

_PATIENCE = 120.0
"""Seconds that a process waits for the others to start."""

_NAMES = {
    "int8": "NCCL_INT8",
    "uint8": "NCCL_UINT8",
    "int32": "NCCL_INT32",
    "uint32": "NCCL_UINT32",
    "int64": "NCCL_INT64",
    "uint64": "NCCL_UINT64",
    "float16": "NCCL_FLOAT16",
    "float32": "NCCL_FLOAT32",
    "float64": "NCCL_FLOAT64",
}


class Communicator:
    """Sums arrays over all processes' GPUs, on the current stream.

    Nothing waits for the GPU, and a CUDA graph may hold sums. NCCL ends a communicator
    only when no graph has any, which nothing promises at the end of a program, so it is
    never ended: the process takes it along.
    """

    def __init__(self, made: Any):
        import ctypes

        self._made = made
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))

    def sum_into(self, total: Any, array: Any) -> None:
        """Give `total` the sum of all processes' arrays; it may be the array itself.

        Both are contiguous. All processes give arrays of one size and dtype.
        """
        from cupy.cuda import get_current_stream, nccl

        kind = getattr(nccl, _NAMES[array.dtype.name])
        stream = get_current_stream().ptr
        places = array.data.ptr, total.data.ptr
        self._made.allReduce(*places, array.size, kind, nccl.NCCL_SUM, stream)


def communicator(rank: int, size: int) -> tuple[int, Communicator]:
    """This process's GPU, and what sums arrays over all processes' GPUs.

    The processes of a machine take its GPUs in turn (LOCAL_RANK or MPI_LOCALRANKID,
    else the rank). They find one another at MASTER_ADDR and MASTER_PORT, by default
    127.0.0.1 and 13333, within a trusted network. Raises DeviceError when there are
    too few GPUs, when NCCL is missing and when processes do not come.
    """
    cupy = library("cuda")
    names = ("LOCAL_RANK", "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK")
    local = next((int(os.environ[name]) for name in names if name in os.environ), rank)
    count = cupy.cuda.runtime.getDeviceCount()
    if local >= count:
        raise DeviceError(
            f"training over NCCL: expected one GPU a process, process {rank} is "
            f"number {local + 1} on a machine with {count}"
        )
    from cupy.cuda import nccl

    if not nccl.available:
        raise DeviceError(
            "training over NCCL: the library is missing; pip install nvidia-nccl-cu13"
        )
    cupy.cuda.Device(local).use()
    place = (
        os.environ.get("MASTER_ADDR", "127.0.0.1"),
        int(os.environ.get("MASTER_PORT", "13333")),
    )
    if rank == 0:
        words = nccl.get_unique_id()
        given_out(words, size - 1, place)
    else:
        words = fetched(place)
    return local, Communicator(nccl.NcclCommunicator(size, words, rank))


def given_out(
    data: bytes, times: int, place: tuple[str, int], patience: float = _PATIENCE
) -> None:
    """Send bytes to so many processes that ask for them at a place."""
    end = time.monotonic() + patience
    with socket.create_server(place) as server:
        for served in range(times):
            server.settimeout(max(end - time.monotonic(), 1e-3))
            try:
                other, _ = server.accept()
            except TimeoutError:
                raise DeviceError(
                    f"training over NCCL: expected {times} more processes at "
                    f"{place[0]}:{place[1]}, got {served} in {patience:.0f} s"
                ) from None
            with other:
                other.sendall(data)


def fetched(place: tuple[str, int], patience: float = _PATIENCE) -> bytes:
    """The bytes that the first process gives out at a place."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        with (
            contextlib.suppress(OSError),  # it has not started yet
            socket.create_connection(place, timeout=patience) as first,
        ):
            data = b"".join(iter(lambda: first.recv(4096), b""))
            if data:
                return data
        time.sleep(0.1)
    raise DeviceError(
        f"training over NCCL: the first process gives nothing at {place[0]}:{place[1]}"
    )
