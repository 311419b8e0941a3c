"""Precision settings: the dtypes in a file, independent of the module's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from burnish._files.budget import Budget
from burnish.errors import InputError
from burnish.nn.core.record import cast
from burnish.record.elements import Arrays, dtype_called, name_of

Precision: TypeAlias = Literal["double", "full", "half"]


class _Setting(NamedTuple):
    floats: str
    integers: int  # bytes
    complexes: str


_SETTINGS = {
    "double": _Setting("float64", 8, "complex128"),
    "full": _Setting("float32", 4, "complex64"),
    "half": _Setting("float16", 2, "complex64"),
}


def check(precision: str | None) -> None:
    """Raise InputError for a value that is neither a setting nor None."""
    if precision is not None and precision not in _SETTINGS:
        raise InputError(
            f"precision: expected one of {', '.join(_SETTINGS)} or None, "
            f"got {precision!r}"
        )


def narrow(arrays: Arrays, precision: str | None) -> tuple[Arrays, dict[str, str]]:
    """Arrays as a file holds them, and the dtypes that those that changed had.

    Floating-point arrays get the setting's type. Integers are exact: they get narrower
    where every value fits. Raises RecordError where a finite value becomes infinite.
    """
    if precision is None:
        return arrays, {}
    setting = _SETTINGS[precision]
    made = cast(arrays, setting.floats)
    for name, array in made.items():
        if array.dtype.kind in "iu":
            made[name] = _fewer_bytes(array, setting.integers)
        elif array.dtype == np.complex128 and setting.complexes == "complex64":
            made[name] = _narrow_complex(name, array)
    changed = {
        name: name_of(array)
        for name, array in arrays.items()
        if array.dtype != made[name].dtype
    }
    return made, changed


def widen(arrays: Arrays, dtypes: Mapping[str, str], budget: Budget) -> Arrays:
    """Arrays in the dtypes that they had when they were recorded."""
    for name, dtype in dtypes.items():
        budget.take(arrays[name].size * dtype_called(dtype).itemsize)
    return arrays | {
        name: arrays[name].astype(dtype_called(dtype)) for name, dtype in dtypes.items()
    }


def _narrow_complex(name: str, array: np.ndarray) -> np.ndarray:
    parts = np.stack([array.real, array.imag], axis=-1)
    return cast({name: parts}, "float32")[name].view("complex64")[..., 0]


def _fewer_bytes(array: np.ndarray, size: int) -> np.ndarray:
    if array.dtype.itemsize <= size:
        return array
    dtype = np.dtype(f"{array.dtype.kind}{size}")
    limits = np.iinfo(dtype)
    fits = not array.size or (array.min() >= limits.min and array.max() <= limits.max)
    return array.astype(dtype) if fits else array
