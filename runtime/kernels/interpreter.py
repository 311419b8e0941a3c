"""Which interpreter runs this."""

from __future__ import annotations

import sys


def is_cpython() -> bool:
    """Whether this is CPython with its lock, without which objects may go meanwhile."""
    has_lock = getattr(sys, "_is_gil_enabled", lambda: True)()
    return sys.implementation.name == "cpython" and bool(has_lock)
