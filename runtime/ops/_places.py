"""Flat indices of elements that are picked along an axis, by a kernel."""

from __future__ import annotations

from math import prod

import numpy as np

from burnish.backend import Array

_FEW = 1 << 12
"""Indices below which NumPy's calls cost less than a kernel's."""


def along_axis(indices: Array, shape: tuple[int, ...], axis: int) -> Array | None:
    """Places, in an array of `shape` flattened, that indices along an axis point at.

    None where an index is out of range, and where a kernel does not pay.
    """
    if type(indices) is not np.ndarray or indices.size < _FEW:
        return None
    lead, count, rest = shape[:axis], indices.shape[axis], shape[axis + 1 :]
    if indices.dtype != np.int64 or indices.shape != (*lead, count, *rest):
        return None
    from burnish.kernels import direct

    if not direct.usable():
        return None
    places, fault = np.empty(indices.shape, np.int64), np.zeros(1, np.int64)
    direct.launch(
        "places_along", direct.shares(2 * indices.size), fault=fault, out=places,
        ids=np.ascontiguousarray(indices), outer=prod(lead), count=count,
        rows=shape[axis], inner=prod(rest),
    )  # fmt: skip
    return None if fault[0] else places
