"""The heap's unused memory."""

from __future__ import annotations


def trim() -> None:
    """Return freed memory to the system, which glibc keeps between blocks in use.

    A capture computes a whole step with its values, 100 MB and more, which the process
    would hold beside the plan's own memory for as long as it lives.
    """
    import ctypes

    try:
        release = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library
        return
    release(0)
