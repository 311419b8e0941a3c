"""Tables that operators make on the host, brought to where their arrays are."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.autodiff import Variable
from burnish.backend import Array, namespace
from burnish.backend.cuda.tables import on_gpu


def beside(x: Any, table: Array) -> Array:
    """`table`, made on the host, as an array where x is, which is not to change."""
    if isinstance(x, Variable):
        on_host, index = x.device.kind == "cpu", x.device.index
    else:
        on_host = namespace(x) is np
        index = 0 if on_host else x.device.id
    return table if on_host or namespace(table) is not np else on_gpu(table, index)
