"""Sums of gradients, and the ones that backward starts from: one kernel on a GPU."""

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


def ones_like(x: Any) -> Any:
    """An array of ones in x's shape and dtype."""
    xp = namespace(x)
    y = None if xp is np else fused.evaluated(_put_one, (x,), writes=True)
    return xp.ones_like(x) if y is None else y


def _put_one(y: Any, x: Any) -> None:
    y[...] = 1
