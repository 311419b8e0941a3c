"""Configurations as plain values: what JSON can hold, every field written out."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import is_dataclass
from enum import Enum
from typing import Any, get_args, get_origin

from burnish.config.kinds import TAG, dataclasses_in, hints, options, own_fields
from burnish.errors import InputError


def to_plain(config: Any) -> dict[str, Any]:
    """A dataclass as a dict of plain values, defaults too, in the order of its fields.

    Enumerations are written by name, tuples and sets as lists, numbers that are not
    finite as text. Raises InputError, with the field's path, for what has no such form.
    """
    return _fields(config, "")


def _fields(config: Any, path: str) -> dict[str, Any]:
    kinds = hints(type(config))
    return {
        name: _plain(getattr(config, name), kinds[name], f"{path}.{name}".lstrip("."))
        for name in own_fields(type(config))
    }


def _plain(value: Any, kind: Any, path: str) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return _dataclass(value, kind, path)
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {
            _key(key, path): _plain(each, _inside(kind, dict, 1), f"{path}[{key!r}]")
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [
            _plain(each, _inside(kind, type(value), at), f"{path}[{at}]")
            for at, each in enumerate(value)
        ]
    if isinstance(value, set | frozenset):
        within = _inside(kind, type(value), 0)
        return [_plain(each, within, path) for each in sorted(value)]
    raise InputError(
        f"{path}: expected plain values, lists, dicts, enumerations and dataclasses in "
        f"a configuration, got {type(value).__name__}"
    )


def _dataclass(value: Any, kind: Any, path: str) -> dict[str, Any]:
    known = dataclasses_in(kind)
    if known and type(value) not in known:
        names = " or ".join(cls.__name__ for cls in known)
        raise InputError(
            f"{path}: expected {names}, got {type(value).__name__}, which could not be "
            f"distinguished when it is read; annotate the field with a union"
        )
    tag = {TAG: type(value).__name__} if len(known) > 1 else {}
    return tag | _fields(value, path)


def _inside(kind: Any, container: type, at: int) -> Any:
    """The annotation of a place in a container; Any where it has none."""
    for one in options(kind):
        origin, inside = get_origin(one), get_args(one)
        if not inside or origin is None or not isinstance(origin, type):
            continue
        if container is dict and issubclass(origin, Mapping):
            return inside[at]
        if container is tuple and origin is tuple and Ellipsis not in inside:
            return inside[at] if at < len(inside) else Any
        if not issubclass(origin, Mapping):
            return inside[0]
    return Any


def _key(key: Any, path: str) -> str:
    if isinstance(key, Enum):
        return key.name
    if isinstance(key, str) or type(key) is int:
        return str(key)
    raise InputError(f"{path}: expected keys of text or whole numbers, got {key!r}")
