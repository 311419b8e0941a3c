"""Settings of cuBLASLt and cuDNN calls by thread: the workspace, and TF32 in plans."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

WORKSPACE = 64 << 20
"""Bytes that a product, or a convolution, may use beside its arrays."""


class _Held(threading.local):
    """State of a thread."""

    def __init__(self) -> None:
        self.scratch: Any = None  # the workspace, where a caller has its own
        self.tf32 = self.in_plan = False


_held = _Held()
_workspaces: dict[tuple[int, int], Any] = {}


@contextlib.contextmanager
def planned(room: Any, tf32: bool) -> Iterator[None]:
    """In the `with` block this thread's products are a plan's.

    They use this array of WORKSPACE bytes. tf32: those of single precision round what
    they multiply to 11 bits.
    """
    held = _held
    before = held.scratch, held.tf32, held.in_plan
    held.scratch, held.tf32, held.in_plan = room, tf32, True
    try:
        yield
    finally:
        held.scratch, held.tf32, held.in_plan = before


def in_plan() -> bool:
    """Whether this thread's products are a plan's."""
    return _held.in_plan


def settings() -> tuple[bool, bool]:
    """What decides how products of this thread are computed: TF32, and in a plan."""
    return _held.tf32, _held.in_plan


def rounds() -> bool:
    """Whether this thread's products of single precision are TF32."""
    return _held.tf32


def workspace(device: int, stream: int) -> Any:
    """The WORKSPACE bytes of a stream; a caller's own, where it has some."""
    if _held.scratch is not None:
        return _held.scratch
    try:
        return _workspaces[device, stream]
    except KeyError:
        import cupy

        made = _workspaces[device, stream] = cupy.ndarray(WORKSPACE, "uint8")
        return made
