"""Where arrays live and which library computes on them.

A backend is a library of array operations (NumPy, CuPy, one that a package brings); a
device is a place that a backend serves. `Device("cuda:0").autodiff()` is the same
place with recording switched on, as Burn decorates a backend with autodiff.
"""

from burnish.backend.device import Device, is_kind
from burnish.backend.namespace import (
    Array,
    as_indices,
    as_places,
    library,
    namespace,
    on_host,
)
from burnish.backend.place import dtype_from

__all__ = [
    "Array",
    "Device",
    "as_indices",
    "as_places",
    "dtype_from",
    "is_kind",
    "library",
    "namespace",
    "on_host",
]
