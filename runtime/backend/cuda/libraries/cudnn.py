"""cuDNN, loaded: its functions in C, descriptors, and a handle for each device.

None of it is needed: where cuDNN is missing, `library` gives None.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

from burnish.backend.cuda.libraries.found import shared_library


class Library:
    """cuDNN, loaded; its functions say what went wrong."""

    def __init__(self, found: Any):
        import ctypes

        self.found, self.ctypes = found, ctypes
        self.perf: Any = type(
            "Perf",
            (ctypes.Structure,),
            {
                "_fields_": [
                    ("algo", ctypes.c_int),
                    ("status", ctypes.c_int),
                    ("time", ctypes.c_float),
                    ("memory", ctypes.c_size_t),
                    ("determinism", ctypes.c_int),
                    ("math", ctypes.c_int),
                    ("reserved", ctypes.c_int * 3),
                ]
            },
        )

    def call(self, name: str, *args: Any) -> None:
        if status := getattr(self.found, name)(*args):
            raise RuntimeError(f"{name}: status {status}")

    def made(self, what: str) -> Any:
        """A handle or descriptor."""
        place = self.ctypes.c_void_p()
        name = "cudnnCreate" + (f"{what}Descriptor" if what else "")
        self.call(name, self.ctypes.byref(place))
        return place

    def ints(self, numbers: Any) -> Any:
        return (self.ctypes.c_int * len(numbers))(*numbers)


@functools.cache
def library() -> Library | None:
    """cuDNN 9 from its wheel or the system's libraries; None where it is missing."""
    found = shared_library("libcudnn", ("9",))
    return None if found is None else Library(found)


class _Held(threading.local):
    """State of a thread; a handle is bound to a stream."""

    def __init__(self) -> None:
        self.handles: dict[int, Any] = {}


_held = _Held()


def handle(lt: Library, device: int) -> Any:
    """The thread's handle on a device, bound to the current stream."""
    import cupy

    if device not in _held.handles:
        _held.handles[device] = lt.made("")
    made = _held.handles[device]
    stream = lt.ctypes.c_void_p(cupy.cuda.get_current_stream().ptr)
    lt.call("cudnnSetStream", made, stream)
    return made
