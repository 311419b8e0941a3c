"""Sums of gradients: one kernel on a GPU, whatever order the arrays' axes have."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend.cuda.elementwise import fused
from burnish.backend.namespace import namespace


def added(a: Any, b: Any) -> Any:
    """a + b"""
    xp = namespace(a)
    if xp is not np and xp.__name__ == "cupy" and namespace(b) is xp:
        y = fused.evaluated(_sum, (a, b))
        if y is not None:
            return y
    return a + b


def _sum(a: Any, b: Any) -> Any:
    return a + b
