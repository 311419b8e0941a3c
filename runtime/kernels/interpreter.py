"""The running interpreter: whether it is CPython with its global lock."""

from __future__ import annotations

import sys


def is_cpython() -> bool:
    """Whether objects are only freed by the thread that holds CPython's global lock."""
    has_lock = getattr(sys, "_is_gil_enabled", lambda: True)()
    return sys.implementation.name == "cpython" and bool(has_lock)
