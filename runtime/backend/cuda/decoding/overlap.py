"""Programmatic dependent launch: a kernel begins while the one before it ends.

A kernel waits itself before it reads what earlier ones wrote; see
`templates/kernels/_overlap.cu.jinja`.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

_SERIALIZATION = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
_SHARED = 24 << 10
"""Bytes of shared memory that a kernel has, beside its own, without asking for more."""


@functools.cache
def overlaps(device: int) -> bool:
    """Whether kernels on a device can begin early: compute capability 9.0 and above."""
    import cupy

    capability = int(cupy.cuda.Device(device).compute_capability)
    return capability >= 90 and _driver() is not None


class _Driver:
    """CUDA's driver: one launch with attributes."""

    def __init__(self, library: Any):
        import ctypes

        self.ctypes = c = ctypes
        self.launch = library.cuLaunchKernelEx
        numbers = [c.c_uint] * 7
        names = ("gx", "gy", "gz", "bx", "by", "bz", "shared")
        self.attribute = type(
            "Attribute",
            (c.Structure,),
            {
                "_fields_": [
                    ("id", c.c_int),
                    ("unused", c.c_int),
                    ("value", c.c_int),
                    ("rest", c.c_char * 60),
                ]
            },
        )
        self.config = type(
            "Config",
            (c.Structure,),
            {
                "_fields_": [
                    *zip(names, numbers, strict=True),
                    ("stream", c.c_void_p),
                    ("attributes", c.POINTER(self.attribute)),
                    ("count", c.c_uint),
                ]
            },
        )
        self.early = self.attribute(_SERIALIZATION, 0, 1, b"")


@functools.cache
def _driver() -> _Driver | None:
    import ctypes

    try:
        return _Driver(ctypes.CDLL("libcuda.so.1"))
    except (OSError, AttributeError):  # no driver, or one before CUDA 12
        return None


def run(
    made: Any,
    blocks: tuple[int, ...],
    threads: tuple[int, ...],
    given: tuple[Any, ...],
    shared: int = 0,
) -> None:
    """Launch a kernel that calls `begun` and `arrived`, on the current stream.

    It begins early in a CUDA graph alone, whose weights nothing in it writes.
    given: arrays, and NumPy's numbers and structures, as `cupy.RawKernel` takes them.
    """
    import cupy

    if shared > _SHARED and made.max_dynamic_shared_size_bytes < shared:
        made.max_dynamic_shared_size_bytes = shared
    driver, stream = _driver(), cupy.cuda.get_current_stream()
    is_early = overlaps(cupy.cuda.runtime.getDevice()) and stream.is_capturing()
    if driver is None or not is_early:
        made(blocks, threads, given, shared_mem=shared)
        return
    c = driver.ctypes
    held = [
        np.asarray(np.uint64(a.data.ptr))
        if isinstance(a, cupy.ndarray)
        else np.asarray(a)
        for a in given
    ]
    places = (c.c_void_p * len(held))(*(a.ctypes.data for a in held))
    sizes = (*blocks, 1, 1)[:3], (*threads, 1, 1)[:3]
    config = driver.config(
        *sizes[0], *sizes[1], shared, stream.ptr, c.pointer(driver.early), 1
    )
    status = driver.launch(
        c.byref(config), c.c_void_p(made.kernel.ptr), places, c.c_void_p()
    )
    if status:
        raise RuntimeError(f"cuLaunchKernelEx: status {status}")
