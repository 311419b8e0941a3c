"""NVIDIA's shared libraries, from their wheels or the system's folders."""

from __future__ import annotations

from typing import Any


def shared_library(name: str, versions: tuple[str, ...]) -> Any:
    """A library, loaded by ctypes; None where there is none of these versions."""
    import ctypes
    import importlib.util
    from pathlib import Path

    names: list[str] = []
    spec = importlib.util.find_spec("nvidia")
    for place in (spec and spec.submodule_search_locations) or ():
        names += map(str, sorted(Path(place).glob(f"*/lib/{name}.so.*")))
    names += (f"{name}.so.{version}" for version in versions)
    for each in (*names, f"{name}.so"):
        try:
            return ctypes.CDLL(each)
        except OSError:
            continue
    return None
