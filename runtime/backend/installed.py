"""Array libraries that installed packages bring: entry points of `burnish.backends`.

The name of an entry point is the kind of a device, its value a module with NumPy's
functions, `ndarray`, the class of its arrays, and `asnumpy`, as CuPy has it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from burnish.errors import DeviceError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "burnish.backends"

loaded: dict[str, Any] = {}
"""The libraries that a device has asked for, by kind."""

_ASKED = ("ndarray", "asnumpy", "asarray")


@functools.cache
def kinds() -> dict[str, EntryPoint]:
    """The entry point of every kind of device that a package brings."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=GROUP)}


def load(kind: str) -> Any:
    """The library of a kind, imported. Raises DeviceError where that fails."""
    if kind not in loaded:
        point = kinds()[kind]
        package = point.dist.name if point.dist else point.value
        try:
            xp = point.load()
        except Exception as error:  # the module is another package's
            raise DeviceError(
                f"device {kind}: expected {GROUP} to name an array library, got "
                f"{point.value!r} ({type(error).__name__}: {error}); mend or uninstall "
                f"{package}"
            ) from error
        if missing := [name for name in _ASKED if not hasattr(xp, name)]:
            raise DeviceError(
                f"device {kind}: expected {GROUP} to name an array library with "
                f"{', '.join(_ASKED)}, {point.value!r} of {package} has no "
                f"{', '.join(missing)}"
            )
        loaded[kind] = xp
    return loaded[kind]
