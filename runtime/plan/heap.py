"""Return the memory of freed arrays from the C heap to the system."""

from __future__ import annotations

from burnish.kernels.library import Library


def trim(library: Library) -> None:
    """Return freed memory to the system: what the library keeps for later arrays, and
    what glibc keeps between blocks in use.

    A capture computes a whole step with its values, 100 MB and more, which the process
    would hold beside the plan's own memory for as long as it lives.
    """
    import ctypes

    library.release_memory()
    try:
        release = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library
        return
    release(0)
