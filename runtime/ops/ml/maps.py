"""Dictionaries of features or classes, from and to rows of numbers; on the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from burnish.autodiff import Variable, recording
from burnish.errors import InputError

_CASTS = {"float32": float, "int64": int, "object": str}
_MANY = 8
"""Rows from which dictionaries are filled key by key: up to twice as fast."""

_MISSING = {"float32": 0.0, "int64": 0, "object": "0.f"}


def zip_map(x: Any, keys: Sequence[Any]) -> list[dict[Any, float]]:
    """Each row of x (N, C), or the one of x (C,), as a dictionary of the C keys.

    In a capture it can only be returned: dictionaries are made behind its calls.
    Raises InputError where a row has not as many elements as there are keys.
    """
    count, shape = len(keys), x.shape
    if len(shape) not in (1, 2) or shape[-1] != count:
        raise InputError(
            f"zip_map: expected ({count},) or (N, {count}) for {count} keys, "
            f"got {shape}"
        )
    if recording.tape is not None and isinstance(x, Variable):
        made: list[dict[Any, float]] = recording.tape.late(zip_map, x, keys)
        return made
    if len(shape) == 1:
        return [dict(zip(keys, x.tolist(), strict=True))]
    if shape[0] < _MANY:
        return [dict(zip(keys, row, strict=True)) for row in x.tolist()]
    filled: list[dict[Any, float]] = [{} for _ in range(shape[0])]
    for key, column in zip(keys, x.T.tolist(), strict=True):
        for each, number in zip(filled, column, strict=True):
            each[key] = number
    return filled


def dict_vectorizer(
    x: Mapping[Any, Any], vocabulary: Sequence[Any], *, dtype: Any = "float32"
) -> Any:
    """The values of a dictionary in the order of C keys, 0 or "" without: (1, C)

    Keys outside the vocabulary are left out.
    """
    _check("dict_vectorizer", x)
    missing = "" if np.dtype(dtype) == object else 0
    return np.array([[x.get(key, missing) for key in vocabulary]], dtype)


def cast_map(
    x: Mapping[int, Any], *, dtype: str = "float32", size: int | None = None
) -> Any:
    """The values of a dictionary of whole numbers in the order of its keys: (1, C)

    dtype: "float32", "int64" or "object", which are strings. size: key k is at
    place k of so many, keys beyond are left out and places without one are 0.
    """
    _check("cast_map", x)
    if size is None:
        return np.array([[_cast(x[key], dtype) for key in sorted(x)]], dtype)
    row = [_cast(x[k], dtype) if k in x else _MISSING[dtype] for k in range(size)]
    return np.array([row], dtype)


def _cast(value: Any, dtype: str) -> Any:
    """A float becomes a string of six decimals, as in C."""
    if dtype == "object" and not isinstance(value, str):
        return f"{value:f}"
    return _CASTS[dtype](value)


def _check(where: str, x: Any) -> None:
    if not isinstance(x, Mapping):
        raise InputError(f"{where}: expected a dictionary, got {type(x).__name__}")
