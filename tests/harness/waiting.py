"""Whether a call waits for the GPU: it is made while the GPU is held busy."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import Any

LET_GO = 0.1  # seconds after which the GPU is let go, so that a call that waits returns

_HOLD = r"""
extern "C" __global__ void hold(const volatile int* flag) { while (!*flag) {} }
"""


def waits(call: Callable[[], Any]) -> bool:
    """Whether `call` returns only after everything before it on the GPU is done.

    It is called once before, so that kernels are compiled and memory is there.
    """
    import cupy
    import numpy as np

    call()
    cupy.cuda.runtime.deviceSynchronize()
    memory = cupy.cuda.alloc_pinned_memory(4)
    flag = np.frombuffer(memory, np.int32, 1)
    flag[0] = 0
    _hold()((1,), (1,), (np.uint64(memory.ptr),))
    timer = threading.Timer(LET_GO, flag.__setitem__, (0, 1))
    timer.start()
    start = time.perf_counter()
    try:
        call()
        return time.perf_counter() - start > LET_GO * 0.9
    finally:
        flag[0] = 1
        timer.cancel()
        cupy.cuda.runtime.deviceSynchronize()


@functools.cache
def _hold() -> Any:
    import cupy

    return cupy.RawKernel(_HOLD, "hold")
