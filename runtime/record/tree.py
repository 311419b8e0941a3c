"""Flatten recorded state to arrays by name and a tree of plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any, TypeAlias

import numpy as np

from burnish.autodiff import Variable
from burnish.backend import on_host
from burnish.config import to_plain
from burnish.errors import RecordError
from burnish.record.elements import Arrays, name_of

Plain: TypeAlias = Any
"""None, truth, numbers, text, lists and dicts; an array is {"$array": its name}."""

NOTHING: Plain = object()
"""The page of a state dict, which consists of arrays only."""

_ARRAY, _FLOAT, _INTEGER = "$array", "$float", "$integer"
_DEEPEST = 64
_LONG = 1 << 63


def take_apart(item: Any) -> tuple[Plain, Arrays]:
    """The arrays of an item by dotted path, and the page around them.

    item: a module, an optimizer, a schedule or whatever else has `state_dict`; a dict,
    list or tuple of such; arrays and tensors; configurations, plain values. The values
    around are NOTHING for a dict of nothing but arrays, such as a state dict.

    Raises RecordError for anything else, and for arrays of other things than numbers.
    """
    arrays: Arrays = {}
    state = item.state_dict() if hasattr(item, "state_dict") else item
    if isinstance(state, Mapping) and all(map(_is_array, state.values())):
        for name, value in state.items():
            arrays[_text(name, "")] = _checked(value, name)
        return NOTHING, arrays
    return _taken(state, "", arrays, 0), arrays


def put_together(plain: Plain, arrays: Arrays) -> Any:
    """The item that `take_apart` was given; objects come back as their states."""
    return dict(arrays) if plain is NOTHING else _put(plain, arrays)


def _is_array(value: Any) -> bool:
    return (
        isinstance(value, Variable)
        or hasattr(value, "__array_interface__")
        or (hasattr(value, "__cuda_array_interface__"))
    )


def _checked(value: Any, path: str) -> np.ndarray:
    array = on_host(value.data if isinstance(value, Variable) else value)
    try:
        name_of(array)
    except RecordError:
        raise RecordError(
            f"{path or 'record'}: expected an array of numbers, got {array.dtype}"
        ) from None
    return array


def _taken(value: Any, path: str, arrays: Arrays, depth: int) -> Plain:
    if depth > _DEEPEST:
        raise RecordError(f"{path[:80]}: expected {_DEEPEST} levels at most, got more")
    if hasattr(value, "state_dict"):
        value = value.state_dict()
    elif is_dataclass(value) and not isinstance(value, type):
        value = to_plain(value)
    if _is_array(value):
        name = _unused(path or "array", arrays)
        arrays[name] = _checked(value, path)
        return {_ARRAY: name}
    if isinstance(value, Mapping):
        if len(value) == 1 and next(iter(value)) in (_ARRAY, _FLOAT, _INTEGER):
            raise RecordError(f"{path}: {next(iter(value))!r} is kept for records")
        return {
            _text(key, path): _taken(each, _below(path, key), arrays, depth + 1)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [
            _taken(each, _below(path, at), arrays, depth + 1)
            for at, each in enumerate(value)
        ]
    return _leaf(value, path)


def _leaf(value: Any, path: str) -> Plain:
    """A plain value as every format can hold it."""
    if type(value) is float and not math.isfinite(value):
        return {_FLOAT: str(value)}
    if type(value) is int and not -_LONG <= value < _LONG:
        return {_INTEGER: hex(value)}
    if type(value) is str:
        return _text(value, path)
    if value is None or type(value) in (bool, int, float):
        return value
    raise RecordError(
        f"{path or 'record'}: expected a module, an optimizer, a configuration, an "
        f"array, a container or a plain value, got {type(value).__name__}"
    )


def _put(plain: Plain, arrays: Arrays) -> Any:
    if isinstance(plain, list):
        return [_put(each, arrays) for each in plain]
    if not isinstance(plain, dict):
        return plain
    if len(plain) == 1:
        (key, value), *_ = plain.items()
        if key == _ARRAY:
            return arrays[value]
        if key == _FLOAT:
            return float(value)
        if key == _INTEGER:
            return int(value, 16)
    return {key: _put(each, arrays) for key, each in plain.items()}


def _below(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def _unused(name: str, arrays: Arrays) -> str:
    while name in arrays:  # {"a": {"b": x}, "a.b": y}
        name += "'"
    return name


def _text(value: Any, path: str) -> str:
    try:
        value.encode()
    except (AttributeError, UnicodeEncodeError):
        at = f"{path}: " if path else ""
        raise RecordError(f"{at}expected Unicode text, got {value!r}") from None
    return str(value)
