"""Settings of cuBLASLt and cuDNN calls by thread: the workspace, and TF32 in plans."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

WORKSPACE = 64 << 20
"""Bytes that a product, or a convolution, may use beside its arrays."""


class Settings(NamedTuple):
    """What decides how products are computed."""

    tf32: bool = False
    in_plan: bool = False


class _Held(threading.local):
    """State of a thread."""

    def __init__(self) -> None:
        self.scratch: Any = None  # the workspace, where a caller has its own
        self.settings = Settings()


held = _Held()
_workspaces: dict[tuple[int, int], Any] = {}


@contextlib.contextmanager
def planned(room: Any, tf32: bool) -> Iterator[None]:
    """In the `with` block this thread's products are a plan's.

    They use this array of WORKSPACE bytes. tf32: those of single precision round what
    they multiply to 11 bits.
    """
    before = held.scratch, held.settings
    held.scratch, held.settings = room, Settings(tf32, in_plan=True)
    try:
        yield
    finally:
        held.scratch, held.settings = before


def in_plan() -> bool:
    """Whether this thread's products are a plan's."""
    return held.settings.in_plan


def rounds() -> bool:
    """Whether this thread's products of single precision are TF32."""
    return held.settings.tf32


def workspace(device: int, stream: int) -> Any:
    """The WORKSPACE bytes of a stream; a caller's own, where it has some."""
    if held.scratch is not None:
        return held.scratch
    try:
        return _workspaces[device, stream]
    except KeyError:
        import cupy

        made = _workspaces[device, stream] = cupy.ndarray(WORKSPACE, "uint8")
        return made
