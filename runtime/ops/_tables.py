"""Host tables of operators, copied to the device of their arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.autodiff import Variable
from burnish.backend import Array, Device, namespace
from burnish.backend.cuda.graphs.tables import on_gpu


def beside(x: Any, table: Array) -> Array:
    """`table`, made on the host, as an array where x is, which is not to change."""
    if isinstance(x, Variable):
        return _on(x.device, table)
    if namespace(x) is np:
        return table
    return on_gpu(table, x.device.id)


def _on(device: Device, table: Array) -> Array:
    if device.kind == "cuda":
        return on_gpu(table, device.index)
    return table
