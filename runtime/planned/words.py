"""Values of a plan as JSON: places, numbers, words, and containers of them.

A place is ["place", n], a number or a word ["is", x]; ["float", "inf"], ["dtype", s],
["slice", [a, b, c]], ["tuple", items], ["list", items], ["dict", [[key, item], ...]],
["array", [dtype, shape, elements]] of integers or booleans, such as an index.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from burnish.serialize.elements import dtype_named

_LITERAL = (bool, int, str, type(None))
_NUMBERS = tuple("?bhilqBHILQefdFD")
_INTEGERS = "?bhilqBHILQ"
_LARGEST = 1 << 16
"""The most elements of an array among words; more would make a file slow to read."""

_DEEPEST = 32


class Unwritable(Exception):
    """A value that a plan file cannot express; its message describes it."""


def encoded(value: Any, place: Callable[[Any], int | None]) -> list[Any]:
    """A value in JSON. place: the number of a place, None for other values."""
    number = place(value)
    if number is not None:
        return ["place", number]
    if isinstance(value, np.generic):
        raise Unwritable(f"a number of {type(value).__name__}")
    if type(value) in _LITERAL:
        return ["is", value]
    if type(value) is float:
        return ["is", value] if math.isfinite(value) else ["float", str(value)]
    if isinstance(value, np.dtype):
        return ["dtype", dtype_word(value)]
    if type(value) is slice:
        parts = (value.start, value.stop, value.step)
        return ["slice", [encoded(part, place) for part in parts]]
    if type(value) in (tuple, list):
        return [type(value).__name__, [encoded(item, place) for item in value]]
    if type(value) is dict and all(type(key) in (str, int) for key in value):
        return ["dict", [[key, encoded(item, place)] for key, item in value.items()]]
    if isinstance(value, np.ndarray):
        if value.dtype.char not in _INTEGERS or value.size > _LARGEST:
            raise Unwritable(f"an array of {value.size} {value.dtype}")
        return ["array", [value.dtype.name, value.shape, value.ravel().tolist()]]
    raise Unwritable(f"a {type(value).__name__}")


def read(entry: Any, place: Callable[[int], Any], deep: int = 0) -> Any:
    """The value that `encoded` wrote. place: the value at a place.

    Raises ValueError, TypeError or KeyError for what it did not write.
    """
    kind, value = entry
    if deep > _DEEPEST:
        raise ValueError("containers too deep")

    def items() -> list[Any]:
        return [read(item, place, deep + 1) for item in value]

    match kind:
        case "place" if type(value) is int:
            return place(value)
        case "is" if type(value) in (*_LITERAL, float):
            return value
        case "float":
            return float(value)
        case "dtype":
            return dtype_read(value)
        case "slice":
            return slice(*items())
        case "tuple":
            return tuple(items())
        case "list":
            return items()
        case "dict":
            return {key: read(item, place, deep + 1) for key, item in value}
        case "array":
            word, shape, elements = value
            dtype = dtype_read(word)
            if dtype.char not in _INTEGERS:
                raise ValueError(f"an index of {dtype}")
            return np.array(elements, dtype).reshape(shape)
    raise ValueError(f"{kind!r} is no value of a plan")


def dtype_word(dtype: np.dtype[Any]) -> str:
    """A dtype of numbers by the name that NumPy or ml_dtypes gives it."""
    if not _is_of_numbers(dtype):
        raise Unwritable(f"arrays of {dtype}")
    return dtype.name


def dtype_read(word: Any) -> np.dtype[Any]:
    """The dtype that `dtype_word` wrote.

    Raises ValueError or TypeError for other words, RecordError without ml_dtypes.
    """
    if type(word) is not str or not word.isidentifier():
        raise ValueError(f"{word!r:.40} is no dtype")
    try:
        dtype = dtype_named(word, "plan")
    except AttributeError:
        raise ValueError(f"{word!r:.40} is no dtype") from None
    if not _is_of_numbers(dtype):
        raise ValueError(f"{word!r:.40} is no dtype of numbers")
    return dtype


def _is_of_numbers(dtype: np.dtype[Any]) -> bool:
    """Whether elements are numbers, also ml_dtypes', in the processor's byte order."""
    return (dtype.char in _NUMBERS and dtype.isnative) or dtype.isbuiltin == 2
