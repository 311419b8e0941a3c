"""bfloat16, which NumPy knows from ml_dtypes: computed in float32 and rounded once.

NumPy turns a bfloat16 array beside a Python number into float32 and lacks sums of
products of them. Where ml_dtypes was never imported no array can be one, so float32
alone pays for a look into `sys.modules` and nothing else.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def possible() -> bool:
    """Whether bfloat16 arrays can exist in this process."""
    return "ml_dtypes" in sys.modules


def is_bfloat16(value: Any) -> bool:
    """Whether the value is an array of bfloat16."""
    dtype = getattr(value, "dtype", None)
    return dtype is not None and dtype.kind == "V" and dtype.name == "bfloat16"


def is_among(args: tuple[Any, ...]) -> bool:
    """Whether one is bfloat16 and no other floating-point array is beside it."""
    found = False
    for arg in args:
        dtype = getattr(arg, "dtype", None)
        if dtype is None:
            continue
        if dtype.kind in "fc":
            return False
        found = found or is_bfloat16(arg)
    return found


def widened(value: Any) -> Any:
    """bfloat16 arrays as float32, also those in a tuple; everything else as it is."""
    if isinstance(value, tuple):
        return tuple(map(widened, value))
    return value.astype(np.float32) if is_bfloat16(value) else value


def narrowed(value: Any) -> Any:
    """float32 arrays as bfloat16, also those in a tuple; everything else as it is."""
    if isinstance(value, tuple):
        return tuple(map(narrowed, value))
    if getattr(value, "dtype", None) != np.float32:
        return value
    return value.astype(_dtype())


def like(part: Any, arg: Any) -> Any:
    """A gradient array in bfloat16 where its variable is."""
    return narrowed(part) if is_bfloat16(arg) else part


def _dtype() -> Any:
    return np.dtype(sys.modules["ml_dtypes"].bfloat16)
