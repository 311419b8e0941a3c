"""Geometry of the processor's first-level data cache."""

from __future__ import annotations

import functools
from pathlib import Path

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")

_MANY_WAYS = 12
"""Ways of caches that give two vectors of 16 numbers at once: Intel's since 2019, AMD's
since 2024."""


@functools.cache
def ways(caches: Path = _CACHES) -> int:
    """The lines of one set; 0 where the system does not say.

    caches: the folder in which Linux describes the caches of a core.
    """
    try:
        for cache in sorted(caches.glob("index*")):
            level, kind = ((cache / name).read_text() for name in ("level", "type"))
            if level.strip() == "1" and kind.strip() != "Instruction":
                return int((cache / "ways_of_associativity").read_text())
    except (OSError, ValueError):
        pass
    return 0


def is_wide() -> bool:
    """Whether it has many ways, and loads take less of a product's time."""
    return ways() >= _MANY_WAYS
